"""The two native sources. They open files to read bytes and do nothing else to them."""
