"""Numbers on a scale: one value per item from the numbers of workers who are harsh, sloppy or careless."""
