"""What many samples have in common, as scikit-learn transformers.

Each sample, a tensor of any order, is held as a Tucker network; the networks are added; what their sum
has in common is what every sample is described by. This is the use that the paper makes of sums.
"""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    raise ImportError(
        "tnsum.fusion needs scikit-learn, which is not installed. Install it with "
        "`pip install 'tnsum[fusion]'`."
    )

from tnsum.fusion._classifier import ImageClassifier
from tnsum.fusion._classifier_files import load_classifier
from tnsum.fusion._common_individual import CommonIndividual, Parts
from tnsum.fusion._factor_fusion import FactorFusion
from tnsum.fusion._mirror import Mirrored, MirrorKernel
from tnsum.fusion._oriented_gradients import OrientedGradients
from tnsum.fusion._tucker_concat import TuckerConcat
from tnsum.fusion._tucker_fusion import TuckerFusion

__all__ = [
    "CommonIndividual",
    "FactorFusion",
    "ImageClassifier",
    "MirrorKernel",
    "Mirrored",
    "OrientedGradients",
    "Parts",
    "TuckerConcat",
    "TuckerFusion",
    "load_classifier",
]
