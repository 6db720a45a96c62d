"""Reading and writing the files that answers come from and labels go to."""
