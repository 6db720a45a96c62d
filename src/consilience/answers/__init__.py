"""The data in memory: answers, blocks of them, gold, graphs, and the vocabularies of their ids."""
