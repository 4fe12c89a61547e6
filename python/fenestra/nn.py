"""Networks: layers, ready models, data, training, and models as files, by the names of C++.

>>> net = nn.initialise(nn.lenet(), nn.Key(1))
>>> net(fn.zeros((1, 1, 28, 28), "float32")).shape
(1, 10)
"""

from .datasets import *
from .kinds import *
from .layers import *
from .models import *
from .passes import *
from .ready import *
from .trainer import *
from .training import *
