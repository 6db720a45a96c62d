"""Spans written down for a test."""

from __future__ import annotations

from consilience.kinds.spans import MarkedText, Reading, Spans, collect_texts


def mark(texts, readings, gold=(), tokens=None, origin=None) -> Spans:
    """Spans of `texts` {document: text}; `readings` and `gold` are {(document, worker): spans} and {document: spans}.

    Spans are (start, end, label), in a list, or a dictionary with the confidence of each.
    """
    gold = dict(gold)

    def held(spans):
        return spans if isinstance(spans, dict) else dict.fromkeys(spans)

    marked = []
    for name, text in texts.items():
        own = [Reading(worker, held(spans)) for (document, worker), spans in readings.items() if document == name]
        own += [Reading(None, held(gold[name]))] if name in gold else []
        marked.append(MarkedText(name, text, own, None if tokens is None else tokens[name]))
    return collect_texts(marked, origin)
