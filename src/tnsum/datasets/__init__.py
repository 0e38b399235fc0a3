"""Labelled images: ETH-80, a user's own, and some that are made without any file.

Reading images needs Pillow; making them does not.
"""

from tnsum.datasets._eth80 import load_eth80
from tnsum.datasets._image_folder import load_image_folder, load_images
from tnsum.datasets._image_set import ImageSet
from tnsum.datasets._made_objects import make_objects

__all__ = ["ImageSet", "load_eth80", "load_image_folder", "load_images", "make_objects"]
