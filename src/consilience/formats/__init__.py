"""Reading and writing the files that answers come from and labels go to.

Each format is a file: `delimited`, `json_lines`, `arrow`, `label_studio`, `prodigy`, `argilla`, `doccano`, `brat`,
`conll`, `masks`; `register` lists them. The rest is shared: `files` by all formats, `records` and `annotation_tools`
by annotation tools, `arrays` by masks; `reading`, `scanning`, `writing`, `sources` and `targets` use the register.
"""
