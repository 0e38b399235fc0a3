"""
A sum in every format
=====================

What the nodes of a sum look like: a chain of matrices, Tucker, tensor train, ring, CP, tree and
grid, each x + y.
"""

# %%
# Blocks on the diagonal stand for a superdiagonal: nothing but zeros beside them. Blocks side by
# side are stacked along a node's only contraction mode.

import numpy as np

import tnsum

random = np.random.default_rng(0).standard_normal


def chain(r: int) -> tnsum.Network:
    return tnsum.chain([random((6, r)), random((r, r)), random((r, 5))])


tnsum.draw(chain(2) + chain(3))

# %%
# Tucker: the core is a contraction node.


def tucker(r: int) -> tnsum.Network:
    return tnsum.tucker(random((r, r, r)), [random((n, r)) for n in (6, 5, 4)])


tnsum.draw(tucker(2) + tucker(3))

# %%
# A tensor train of operators, with two physical modes at each node.


def operator(r: int) -> tnsum.Network:
    ranks = (1, r, r, r, 1)
    return tnsum.tensor_train([random((ranks[k], 2, 2, ranks[k + 1])) for k in range(4)])


tnsum.draw(operator(2) + operator(3))

# %%
# A ring.


def ring(r: int) -> tnsum.Network:
    return tnsum.tensor_ring([random((r, 4, r)) for _ in range(6)])


tnsum.draw(ring(2) + ring(3))

# %%
# CP: one mode that all nodes hold, drawn as a dot.


def cp(r: int) -> tnsum.Network:
    return tnsum.cp([random((n, r)) for n in (6, 5, 4)])


tnsum.draw(cp(2) + cp(3))

# %%
# A tree: hierarchical Tucker.


def tree(r: int) -> tnsum.Network:
    pairs = [(random((r, r, r)), [random((4, r)), random((4, r))]) for _ in range(2)]
    return tnsum.tree((random((r, r)), pairs))


tnsum.draw(tree(2) + tree(3))

# %%
# A grid.


def grid(r: int) -> tnsum.Network:
    n_neighbours = [[2, 3, 2], [3, 4, 3], [2, 3, 2]]
    return tnsum.grid([[random((r,) * n + (2,)) for n in row] for row in n_neighbours])


tnsum.draw(grid(2) + grid(3))

# %%
# The numbers themselves: the core of the Tucker sum, a panel for each index of its third mode.

tnsum.drawing.draw_node(tucker(2) + tucker(3), "core")

# sphinx_gallery_thumbnail_number = 2
