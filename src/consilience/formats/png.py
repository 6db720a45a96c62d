"""Pictures as arrays of pixel values, through pillow. No other file imports it.

A pixel of a picture stands for a class in one of these ways:

- a number: of 1, 2, 4, 8 or 16 bits (greyscale), or an index into a palette of colours;
- a colour: red, green and blue, and perhaps opacity. As one number it is 2^16 red + 2^8 green + blue, or, with opacity,
  2^24 red + 2^16 green + 2^8 blue + opacity. What is fully transparent has no colour, and is 0.
"""

from __future__ import annotations

import io
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, MissingDependencyError, first_line
from ..memory import require_memory

SUFFIX = ".png"
GREY = {"1": 1, "L": 1, "I;16": 2, "I": 4}  # bytes of a pixel
# The header of a PNG file ends with these: bits of a number, and whether it is a grey value, a colour, ...
_DEPTH, _KIND = 24, 25


class Picture(NamedTuple):
    """The pixels of a picture.

    Attributes
    ----------
    values : ndarray
        A number for each pixel.
    channels : int
        0 where numbers are grey values or indices, 3 or 4 where they are colours.
    palette : bytes or None
        The colours of the indices 0, 1, ..., three bytes each.
    """

    values: NDArray[Any]
    channels: int = 0
    palette: bytes | None = None


def read_picture(path: str) -> Picture:
    """Return the pixels of a PNG file; every fault in it is an `InputError`."""
    pillow = _import_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            with open(path, "rb") as stream:
                head = stream.read(_KIND + 1)
                stream.seek(0)
                with pillow.open(stream, formats=["PNG"]) as image:
                    return _read_image(path, image, head)
    except InputError:
        raise
    except (pillow.DecompressionBombWarning, pillow.DecompressionBombError) as error:
        raise InputError(
            f"{path!r} says that it is very large: {first_line(error)}.",
            "If it is, save the mask with numpy.save, as .npy.",
        ) from error
    except Exception as error:  # whatever pillow meets in a damaged file
        raise InputError(
            f"{path!r} cannot be read: {first_line(error) or type(error).__name__}.",
            "It may be damaged, cut off, or no PNG file: write it again.",
        ) from error


def _read_image(path: str, image: Any, head: bytes) -> Picture:
    width, height = image.size
    require_memory(4 * width * height, f"{path!r} is a picture of {width:,} x {height:,} pixels")
    if getattr(image, "n_frames", 1) > 1:
        raise InputError(f"{path!r} is an animation of {image.n_frames} pictures.", "Save each as a file of its own.")
    if image.mode == "P":
        image.load()
        return Picture(np.array(image), 0, bytes(image.getpalette("RGB") or b""))
    if image.mode in GREY:
        values = np.array(image)
        if image.mode == "L" and head[_DEPTH] in (2, 4):
            values //= 255 // (2 ** head[_DEPTH] - 1)  # pillow spreads few bits over 0 to 255
        return Picture(values.astype(np.uint16) if values.dtype.kind != "b" and image.mode == "I" else values)
    if head[_DEPTH] == 16:
        raise InputError(
            f"{path!r} has colours of 16 bits, which would be rounded.",
            "Save it with colours of 8 bits, or with a number for each class.",
        )
    if image.mode in ("RGBA", "LA"):
        pixels = np.array(image.convert("RGBA"))
        if (pixels[..., 3] < 255).any():
            values = pack(pixels)
            return Picture(np.where(pixels[..., 3] > 0, values, np.uint32(0)), 4)
    return Picture(pack(np.array(image.convert("RGB"))), 3)


def pack(pixels: NDArray[np.uint8]) -> NDArray[np.uint32]:
    """Return colours as one number each; channels are along the last axis."""
    values = np.zeros(pixels.shape[:-1], np.uint32)
    for channel in range(pixels.shape[-1]):
        values <<= np.uint32(8)
        values |= pixels[..., channel]
    return values


def write_picture(path: str, pixels: NDArray[Any], palette: bytes | None) -> None:
    """Write a PNG file: colours if `pixels` has three axes, else truth values, or numbers from 0 to 65535.

    Numbers have the colours of the palette if there is one, and are grey values otherwise.
    """
    pillow = _import_pillow()
    if pixels.dtype.kind not in "bu" or pixels.dtype.itemsize > 2:
        pixels = pixels.astype(np.uint8 if pixels.max() <= 255 else np.uint16)
    image = pillow.fromarray(np.ascontiguousarray(pixels))
    if palette is not None and pixels.dtype == np.uint8 and pixels.ndim == 2:
        image = image.convert("L")
        image.putpalette(palette)
    image.save(path, format="PNG")


def shrink_picture(path: str, side: int) -> tuple[str, bytes]:
    """Return a small copy of a picture, neither wider nor higher than `side`: its type ("png", "jpeg") and its bytes.

    Every fault in the file is an `InputError`. Nothing but the pixels is copied.
    """
    pillow = _import_pillow("Pictures in reports", "Or leave out the pictures.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            with pillow.open(path, formats=["PNG", "JPEG", "GIF", "WEBP", "BMP"]) as image:
                image.draft("RGB", (side, side))
                clear = image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info
                small = image.convert("RGBA" if clear else "RGB")
    except Exception as error:  # whatever pillow meets in a damaged file
        raise InputError(f"{path!r} cannot be read: {first_line(error) or type(error).__name__}.") from error
    small.thumbnail((side, side))
    stream = io.BytesIO()
    small.save(stream, **({"format": "PNG", "optimize": True} if clear else {"format": "JPEG", "quality": 80}))
    return "png" if clear else "jpeg", stream.getvalue()


def _import_pillow(
    what: str = "Masks in PNG files", instead: str = "Or save the masks with numpy.save, as .npy."
) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise MissingDependencyError(
            f"{what} need pillow, which is not installed.",
            "Install it with: pip install 'consilience[images]'",
            instead,
        ) from error
    return Image
