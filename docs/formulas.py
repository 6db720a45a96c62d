"""Sphinx extension: formulas become MathML while the pages are built.

All browsers have shown MathML since 2023, so a page needs neither JavaScript nor network for its formulas, and a screen
reader can read them. MathJax would be fetched from another server by the reader's browser, and offline its formulas are
LaTeX source. We use math-core because it sets all our formulas right. The converter of docutils knows neither `\\Big`
nor `\\dots`, and latex2mathml leaves `\\|` and `\\arg` as they are and all brackets in one size.

Brackets and sums grow with a font that has a table for mathematics. The style sheet names those that come with Windows,
macOS and most Linux desktops; elsewhere formulas are plainer, and can be read all the same.
"""

from __future__ import annotations

import re

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

CONVERTER = LatexToMathML(fancy_error=False)
# A prime is already small and raised in fonts. As a superscript it would shrink twice, to a speck in subscripts.
PRIME = re.compile(r"<msup>(<mi[^>]*>[^<]*</mi>)<mo>([\u2032\u2033])</mo></msup>")
log = logging.getLogger(__name__)


def to_mathml(latex: str, *, block: bool) -> str:
    """Return a formula as MathML."""
    mathml = CONVERTER.convert_with_local_state(latex, displaystyle=block)
    return PRIME.sub(r'<mrow>\1<mo lspace="0" rspace="0">\2</mo></mrow>', mathml)


def write_formula(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    try:
        mathml = to_mathml(node.astext(), block=block)
    except LatexError as error:
        log.warning("This formula cannot be shown: %s", error, location=node)
        mathml = translator.encode(node.astext())
    if block:
        translator.body.append(translator.starttag(node, "div", CLASS="math", tabindex="0") + mathml + "</div>\n")
    else:
        translator.body.append(mathml)
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
