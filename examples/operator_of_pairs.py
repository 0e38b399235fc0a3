"""
An operator of 780 terms
========================

The sum of Z_i Z_j over all pairs of 40 sites has 780 terms. Each is an operator of rank 1, their
exact sum has rank 780, and an operator of rank 3 is equal to it. Nobody has to know that
beforehand.
"""

# %%
# A term is a tensor train of operators: Z at two sites, the identity at all others. Such an
# operator has two physical modes at each site, and 2^40 rows.

from itertools import combinations

import numpy as np

import tnsum

n_sites = 40
identity = np.eye(2).reshape(1, 2, 2, 1)
z = np.diag([1.0, -1.0]).reshape(1, 2, 2, 1)


def pair(i: int, j: int, n: int) -> tnsum.Network:
    return tnsum.tensor_train([z if site in (i, j) else identity for site in range(n)])


terms = [pair(i, j, n_sites) for i, j in combinations(range(n_sites), 2)]
total = tnsum.add(*terms)
print(total.n_summands, "terms, ranks of the exact sum:", max(total.ranks.values()))

# %%
# Made small again without building a block of zeros:

small = tnsum.compress(total, tolerance=1e-10)
print("ranks from", min(small.ranks.values()), "to", max(small.ranks.values()))
print(f"error {small.error:.0e}, an {small.error_kind}")

# %%
# The same on five sites, to look at. Of the exact sum every inner node has ten blocks on its
# superdiagonal.

few = tnsum.add(*(pair(i, j, 5) for i, j in combinations(range(5), 2)))
few

# %%

tnsum.compress(few)

# %%
# The numbers in the middle node of the exact sum, zeros included: in each block either the identity
# or Z. There is a panel for each of the four entries of a 2 x 2 matrix.

tnsum.drawing.draw_node(few, "node2")

# %%
# The energy of an Ising chain in which all spins couple equally depends on how many spins point up:
# (m^2 - n) / 2 for a magnetisation m. Three entries of the diagonal, out of 2^40:

up = np.zeros((3, n_sites), int)
up[1, :10] = 1
up[2, ::2] = 1
diagonal = small.network.entries(np.concatenate([up, up], axis=1))
print(np.round(diagonal, 6), [(m**2 - n_sites) / 2 for m in (40, 20, 0)])

# sphinx_gallery_thumbnail_number = 1
