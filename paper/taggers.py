"""Ten part-of-speech taggers of NLTK, each trained on its own tenth of the Brown corpus, with the universal tags.

They tag the sentences of the Penn Treebank sample. The paper says neither which taggers of NLTK it trained nor on which
parts of Brown. These ten are a plausible choice, from good to poor.
"""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from consilience.errors import InputError

Sentence = list[tuple[str, str]]
NOUN = "NOUN"


def _train_unigrams(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.UnigramTagger(sentences, backoff=nltk.DefaultTagger(NOUN))


def _train_bigrams(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.BigramTagger(sentences, backoff=_train_unigrams(nltk, sentences))


def _train_trigrams(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.TrigramTagger(sentences, backoff=_train_bigrams(nltk, sentences))


def _train_affixes(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.AffixTagger(sentences, affix_length=-3, backoff=nltk.DefaultTagger(NOUN))


def _train_unigrams_with_affixes(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.UnigramTagger(sentences, backoff=_train_affixes(nltk, sentences))


def _train_perceptron(nltk: Any, sentences: list[Sentence]) -> Any:
    tagger = nltk.tag.PerceptronTagger(load=False)
    state = random.getstate()
    random.seed(0)  # it shuffles its sentences with Python's global random numbers
    tagger.train(sentences, nr_iter=5)
    random.setstate(state)
    return tagger


def _train_hidden_markov(nltk: Any, sentences: list[Sentence]) -> Any:
    def smooth(counts: Any, bins: int) -> Any:
        return nltk.LidstoneProbDist(counts, 0.1, bins)

    return nltk.tag.hmm.HiddenMarkovModelTrainer().train_supervised(sentences, estimator=smooth)


def _train_trigrams_n_tags(nltk: Any, sentences: list[Sentence]) -> Any:
    tagger = nltk.tag.tnt.TnT(unk=nltk.DefaultTagger(NOUN), Trained=True, N=100)
    tagger.train(sentences)
    return tagger


def _train_naive_bayes(nltk: Any, sentences: list[Sentence]) -> Any:
    return nltk.tag.sequential.ClassifierBasedPOSTagger(train=sentences)


# Name: how it is trained, and on how many sentences of its tenth (None: all).
CREW: dict[str, tuple[Callable[[Any, list[Sentence]], Any], int | None]] = {
    "perceptron": (_train_perceptron, None),
    "unigrams": (_train_unigrams, None),
    "unigrams, affixes": (_train_unigrams_with_affixes, None),
    "bigrams": (_train_bigrams, None),
    "trigrams": (_train_trigrams, None),
    "trigrams'n'tags": (_train_trigrams_n_tags, 1_500),
    "naive Bayes": (_train_naive_bayes, 1_500),
    "hidden Markov": (_train_hidden_markov, 1_500),
    "unigrams, few": (_train_unigrams, 300),
    "affixes": (_train_affixes, None),
}


def tag_treebank(folder: Path, seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return the tags that each tagger gives to all words of the Treebank sample, in its order, and the true ones.

    Parameters
    ----------
    folder : Path
        Where brown.zip, treebank.zip and universal_tagset.zip are.
    seed : int
        Decides which sentences of Brown each tagger is trained on.

    Returns
    -------
    answers : list of list of str
        One list for each tagger.
    truth : list of list of str
        The true tags, one list for each sentence.
    """
    import nltk
    import nltk.tag.hmm
    import nltk.tag.sequential
    import nltk.tag.tnt

    brown, treebank = read_brown(folder), read_treebank(folder)
    random.Random(seed).shuffle(brown)
    share = len(brown) // len(CREW)
    words = [[word for word, _ in sentence] for sentence in treebank]
    answers = []
    for place, (train, most) in enumerate(CREW.values()):
        tagger = train(nltk, brown[place * share : (place + 1) * share][:most])
        answers.append([tag for sentence in words for _, tag in tagger.tag(sentence)])
    return answers, [[tag for _, tag in sentence] for sentence in treebank]


def read_brown(folder: Path) -> list[Sentence]:
    """Return the sentences of the Brown corpus with universal tags. A file holds one sentence per line, of word/tag."""
    tags = _read_map(folder, "en-brown.map")
    sentences = []
    for text in _read_texts(folder / "brown.zip", r"brown/c[a-r]\d\d"):
        for line in text.splitlines():
            pairs = [pair.rsplit("/", 1) for pair in line.split()]
            if pairs:
                sentences.append([(word, tags.get(tag.upper(), "X")) for word, tag in pairs])
    return sentences


def read_treebank(folder: Path) -> list[Sentence]:
    """Return the sentences of the Treebank sample with universal tags, which are the leaves of parse trees."""
    from nltk.tree import Tree

    tags = _read_map(folder, "en-ptb.map")
    return [
        [(word, tags.get(tag, "X")) for word, tag in Tree.fromstring(tree, remove_empty_top_bracketing=True).pos()]
        for text in _read_texts(folder / "treebank.zip", r"treebank/combined/wsj_\d+\.mrg")
        for tree in re.split(r"\n(?=\()", text.strip())
    ]


def _read_texts(path: Path, pattern: str) -> list[str]:
    """Return the files of an archive whose names match, in the order of their names."""
    if not path.is_file():
        raise InputError(
            f"There is no archive {str(path)!r}, which is needed to train taggers.",
            f"It is the package {path.stem!r} of nltk_data.",
        )
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if re.fullmatch(pattern, name))
        return [archive.read(name).decode("utf-8") for name in names]


def _read_map(folder: Path, name: str) -> dict[str, str]:
    """Return the universal tag of each tag of a corpus."""
    (text,) = _read_texts(folder / "universal_tagset.zip", rf"universal_tagset/{name}")
    return dict(line.split("\t") for line in text.splitlines() if "\t" in line)
