"""Pictures of networks, stacks, sums and topologies: in notebooks, as SVG, by matplotlib, for LaTeX."""

from tnsum.drawing._draw import draw, draw_node, to_svg, to_tikz

__all__ = ["draw", "draw_node", "to_svg", "to_tikz"]
