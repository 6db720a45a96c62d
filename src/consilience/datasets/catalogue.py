"""What is known of each dataset: what it is, how large, under which licence, whose work, and from where."""

from __future__ import annotations

import difflib
from typing import NamedTuple

from ..errors import ParameterError, shorten

ANSWERS, GOLD, ITEMS = "responses.parquet", "gold.parquet", "items.parquet"
EDGES, NEAREST = "edges.parquet", "edges_knn10.parquet"
DENSE, SPARSE = "features.npy", "features.npz"


class Entry(NamedTuple):
    """One dataset of the catalogue; the numbers are those of what `load` returns.

    Attributes
    ----------
    name : str
        What `load` calls it, and its folder.
    description : str
        What it is, in one line.
    kind : {"sequences", "network", "independent"}
        How items hang together.
    n_items, n_workers, n_classes, n_answers : int
        How large it is. Without answers there are 0 workers: items, graph and gold only.
    licence : str
        As stated by the source.
    citation : str
        Whose work it is.
    source : str
        Public repository, path and commit that it was prepared from.
    files : tuple of str
        What `load` reads.
    """

    name: str
    description: str
    kind: str
    n_items: int
    n_workers: int
    n_classes: int
    n_answers: int
    licence: str
    citation: str
    source: str
    files: tuple[str, ...] = (ANSWERS, GOLD)


CATALOGUE = (
    Entry(
        name="pos",
        description="Parts of speech in newspaper text, by ten taggers trained on parts of another corpus",
        kind="sequences",
        n_items=100_676,
        n_workers=10,
        n_classes=12,
        n_answers=1_006_760,
        licence="non-commercial use (Brown; Treebank sample, LDC 1995); tag map CC BY-SA 4.0",
        citation="Brown corpus and Penn Treebank sample, as in nltk_data",
        source="github.com/nltk/nltk_data, packages/corpora/{brown,treebank}.zip and "
        "packages/taggers/universal_tagset.zip, commit 5db857e6f7df11eabb5e5665836db9ec8df07e28",
    ),
    Entry(
        name="ner",
        description="Named entities in news, by a crowd; sentences whose words agree with gold's",
        kind="sequences",
        n_items=78_107,
        n_workers=47,
        n_classes=9,
        n_answers=322_074,
        licence="not stated",
        citation="Rodrigues, Pereira & Ribeiro, 2014; selected as in Nguyen et al., ACL 2017",
        source="github.com/thanhan/seqcrowd-acl17, task1.zip, commit 2a8a86f9",
    ),
    Entry(
        name="ner_aligned",
        description="The same annotations, aligned by characters, with no sentence left out",
        kind="sequences",
        n_items=81_623,
        n_workers=47,
        n_classes=9,
        n_answers=405_653,
        licence="not stated",
        citation="Rodrigues, Pereira & Ribeiro, 2014; aligned as in Simpson & Gurevych, EMNLP 2019",
        source="github.com/thanhan/seqcrowd-acl17, task1.zip, commit 2a8a86f9",
    ),
    Entry(
        name="pico",
        description="Who was studied: spans in abstracts of clinical trials, by a crowd; gold for 191 of 4,740",
        kind="sequences",
        n_items=1_420_773,
        n_workers=312,
        n_classes=3,
        n_answers=8_552_675,
        licence="not stated",
        citation="Nguyen et al., ACL 2017",
        source="github.com/yinfeiy/PICO-data, annotations/*/PICO-annos-{crowdsourcing,professional}.json and "
        "docs/*.txt, commit e7e647917d6aa5b7eaaa72f523d452225ce3951b",
    ),
    Entry(
        name="cora",
        description="Papers on machine learning that cite each other; words as features; no answers",
        kind="network",
        n_items=2_708,
        n_workers=0,
        n_classes=7,
        n_answers=0,
        licence="MIT (repository); data not stated",
        citation="Sen et al., AI Magazine 2008",
        source="github.com/EdisonLeeeee/GraphData, datasets/cora.npz, commit f8022c26b917346f2a461ffec0ec5ae24b36de68",
        files=(GOLD, EDGES, SPARSE),
    ),
    Entry(
        name="citeseer",
        description="Papers on computer science that cite each other; words as features; no answers",
        kind="network",
        n_items=3_312,
        n_workers=0,
        n_classes=6,
        n_answers=0,
        licence="MIT (repository); data not stated",
        citation="Sen et al., AI Magazine 2008",
        source="github.com/EdisonLeeeee/GraphData, datasets/citeseer.npz, "
        "commit f8022c26b917346f2a461ffec0ec5ae24b36de68",
        files=(GOLD, EDGES, SPARSE),
    ),
    Entry(
        name="pubmed",
        description="Papers on diabetes that cite each other; features of 1,060 only; no answers",
        kind="network",
        n_items=19_717,
        n_workers=0,
        n_classes=3,
        n_answers=0,
        licence="MIT (repository); data not stated",
        citation="Namata et al., 2012",
        source="github.com/kimiyoung/planetoid, data/ind.pubmed.{graph,ally,ty,x,tx,test.index}, "
        "commit af6abf468a772cc055bec88c52e4d6f51b7c37e3",
        files=(GOLD, EDGES, SPARSE),
    ),
    Entry(
        name="music",
        description="Genres of songs, by a crowd; sound features and their ten nearest neighbours",
        kind="network",
        n_items=700,
        n_workers=44,
        n_classes=10,
        n_answers=2_945,
        licence="not stated",
        citation="Rodrigues, Pereira & Ribeiro, 2013",
        source="github.com/shahanaibrahimosu/end-to-end-crowdsourcing, "
        "data/Music/{mturk_answers,music_genre_gold,music_genre_test}.csv, "
        "commit 7653680c475ba8faa5d4a7b104b42a2a5204cef9",
        files=(ANSWERS, GOLD, ITEMS, NEAREST, DENSE),
    ),
    Entry(
        name="sentence_polarity",
        description="Praise or blame in film reviews, by a crowd; text features and their ten nearest neighbours",
        kind="network",
        n_items=4_999,
        n_workers=203,
        n_classes=2,
        n_answers=27_746,
        licence="not stated; sentences CC BY 4.0",
        citation="Rodrigues, Pereira & Ribeiro, 2013; sentences of Pang & Lee, 2005",
        source="github.com/fmenat/PyLearningCrowds, "
        "data/Sentiment (answers.txt, Sentiment_Z_train.txt, Sentiment_text_train.txt), "
        "commit 0edf617d0357a43b48dc53f10f4181ec0163d4db",
        files=(ANSWERS, GOLD, ITEMS, NEAREST, DENSE),
    ),
    Entry(
        name="bubil_mri",
        description="Aorta or not: pixels of 35 magnetic resonance images, by seven annotations of each",
        kind="network",
        n_items=28_181,
        n_workers=7,
        n_classes=2,
        n_answers=197_267,
        licence="BSD-4-Clause style (Boston University, 2014)",
        citation="Gurari et al., WACV 2015",
        source="github.com/tobastin/CS760-Project-Lungs, DataSet/Rabbit/BU-BIL_Dataset6, "
        "commit 97d69b49028adc61c1f52a2cd2be3fda881608ad",
        files=(ANSWERS, GOLD, ITEMS, EDGES, DENSE),
    ),
    Entry(
        name="sleep",
        description="Sleep stages of 25 nights, by six published networks; gold is the consensus of five people",
        kind="sequences",
        n_items=24_665,
        n_workers=6,
        n_classes=5,
        n_answers=147_990,
        licence="MIT",
        citation="Dreem Open Dataset DOD-H",
        source="github.com/Dreem-Organization/dreem-learning-evaluation, scorers/dodh and results/dodh/base_models, "
        "commit 1e4c142d84634b60898845243b01b81d7eb4acec",
    ),
    Entry(
        name="bc5cdr",
        description="Chemicals and diseases in abstracts, by labelling functions whose silence counts",
        kind="sequences",
        n_items=326_508,
        n_workers=16,
        n_classes=5,
        n_answers=63_388,
        licence="Apache-2.0 (repository); corpus not stated",
        citation="BC5CDR, with the labelling functions of CHMM-ALT",
        source="github.com/Yinghao-Li/CHMM-ALT, data/BC5CDR/{train,valid,test}.json, "
        "commit b6a5c90344531c9c335f0d4346cd9fb6d7f9642e",
    ),
    Entry(
        name="bluebird",
        description="Indigo bunting or blue grosbeak, by a crowd that saw every image",
        kind="independent",
        n_items=108,
        n_workers=39,
        n_classes=2,
        n_answers=4_212,
        licence="BSD-style (Caltech, 2011-2012)",
        citation="Welinder et al., NIPS 2010",
        source="github.com/welinder/cubam, demo/bluebirds/{labels,gt}.yaml, "
        "commit fe5ba700f1adbb489c69af311558d64370d73d36",
    ),
    Entry(
        name="rte",
        description="Does one sentence follow from another, by a crowd",
        kind="independent",
        n_items=800,
        n_workers=164,
        n_classes=2,
        n_answers=8_000,
        licence="MIT (repository); data not stated",
        citation="Snow et al., EMNLP 2008",
        source="github.com/yuan-li/truth-inference-at-scale, data/SpectralMethodsMeetEM/rte, "
        "commit 621789b2d57324d3559dc973b2613d2296d73f55",
    ),
    Entry(
        name="dog",
        description="Breeds of dogs in images, by a crowd",
        kind="independent",
        n_items=807,
        n_workers=109,
        n_classes=4,
        n_answers=8_070,
        licence="not stated",
        citation="Zhou et al., NIPS 2012; archive of Zheng et al., PVLDB 2017",
        source="github.com/zhydhkcws/zhydhkcws.github.io, crowd_truth_inference/datasets.zip (s4_Dog data), "
        "commit a9d529c10b919e54844b715383f357b2f7f3bca3",
    ),
    Entry(
        name="web",
        description="How well a page answers a query, on five levels, by a crowd",
        kind="independent",
        n_items=2_665,
        n_workers=177,
        n_classes=5,
        n_answers=15_567,
        licence="MIT (repository); data not stated",
        citation="Zhou et al., NIPS 2012; packaged by Zhang et al., 2014",
        source="github.com/yuan-li/truth-inference-at-scale, data/SpectralMethodsMeetEM/web, "
        "commit 621789b2d57324d3559dc973b2613d2296d73f55",
    ),
    Entry(
        name="product",
        description="Do two descriptions mean the same product, by a crowd",
        kind="independent",
        n_items=8_315,
        n_workers=176,
        n_classes=2,
        n_answers=24_945,
        licence="not stated",
        citation="Wang et al., PVLDB 2012; archive of Zheng et al., PVLDB 2017",
        source="github.com/zhydhkcws/zhydhkcws.github.io, crowd_truth_inference/datasets.zip (d_jn-product), "
        "commit a9d529c10b919e54844b715383f357b2f7f3bca3",
    ),
    Entry(
        name="llm_judges",
        description="Which of two texts follows the instruction, by language models as judges",
        kind="independent",
        n_items=419,
        n_workers=130,
        n_classes=2,
        n_answers=54_339,
        licence="MIT",
        citation="Zeng et al., ICLR 2024",
        source="github.com/princeton-nlp/LLMBar, Dataset/LLMBar/**/evaluators/<model>/<prompt>/result.json, "
        "commit 900616bff90b6c6c8e1681f7d079250637c55992",
    ),
)


def find_entry(name: str) -> Entry:
    """Return the entry of a dataset.

    >>> find_entry("dog").citation
    'Zhou et al., NIPS 2012; archive of Zheng et al., PVLDB 2017'
    """
    entries = {entry.name: entry for entry in CATALOGUE}
    if isinstance(name, str) and name in entries:
        return entries[name]
    close = difflib.get_close_matches(name, entries, n=1) if isinstance(name, str) else []
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise ParameterError(f"There is no dataset {shorten(name)}.{hint} There are {', '.join(entries)}.")
