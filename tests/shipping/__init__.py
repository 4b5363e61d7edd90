"""What is shipped beside the packages: the image, the unit, the pins."""
