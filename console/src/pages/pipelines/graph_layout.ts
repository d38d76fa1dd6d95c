/** Places of a graph's nodes: in columns by depth, or below each other where there is little room. */

export interface GraphNode {
  name: string;
  needs: string[];
}

export interface Place {
  x: number;
  y: number;
}

export interface GraphLayout {
  places: Map<string, Place>;
  /** An SVG path for each edge, by `from to`. */
  edges: { key: string; from: string; path: string }[];
  nodeWidth: number;
  width: number;
  height: number;
}

export const NODE_WIDTH = 236;
export const NODE_HEIGHT = 288;
const GAP_X = 56;
const GAP_Y = 22;
const GUTTER = 30;
/** Below this width nodes stand below each other. */
const NARROW = 560;

export function layOut(nodes: GraphNode[], room: number): GraphLayout {
  return room < NARROW ? stack(nodes, room) : columns(nodes, room);
}

/** Return the number of steps before each node. */
export function depthsOf(nodes: GraphNode[]): Map<string, number> {
  const depths = new Map<string, number>();
  const known = new Map(nodes.map((node) => [node.name, node]));
  const depthOf = (name: string, seen: string[]): number => {
    const before = depths.get(name);
    if (before !== undefined) return before;
    const needs = (known.get(name)?.needs ?? []).filter((need) => known.has(need) && !seen.includes(need));
    const depth = Math.max(-1, ...needs.map((need) => depthOf(need, [...seen, name]))) + 1;
    depths.set(name, depth);
    return depth;
  };
  for (const node of nodes) depthOf(node.name, []);
  return depths;
}

function columns(nodes: GraphNode[], room: number): GraphLayout {
  const depths = depthsOf(nodes);
  const ranks = Math.max(...depths.values(), 0) + 1;
  const gap = Math.max(GAP_X, Math.min(110, (room - ranks * NODE_WIDTH) / Math.max(1, ranks - 1)));
  const places = new Map<string, Place>();
  const rows = Array.from({ length: ranks }, (_, depth) => nodes.filter((node) => depths.get(node.name) === depth));
  const most = Math.max(...rows.map((row) => row.length));
  const height = most * (NODE_HEIGHT + GAP_Y) - GAP_Y;
  rows.forEach((row, depth) => {
    const weight = (node: GraphNode) => {
      const above = node.needs.flatMap((need) => places.get(need)?.y ?? []);
      return above.length ? above.reduce((sum, y) => sum + y, 0) / above.length : 0;
    };
    const top = (height - (row.length * (NODE_HEIGHT + GAP_Y) - GAP_Y)) / 2;
    row
      .toSorted((a, b) => weight(a) - weight(b))
      .forEach((node, index) => {
        places.set(node.name, { x: depth * (NODE_WIDTH + gap), y: top + index * (NODE_HEIGHT + GAP_Y) });
      });
  });
  const edges = edgesOf(nodes, places, (from, to) => {
    const [x1, y1] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2];
    const [x2, y2] = [to.x - 2, to.y + NODE_HEIGHT / 2];
    const bend = Math.max(gap / 2, (x2 - x1) / 2);
    return `M ${x1} ${y1} C ${x1 + bend} ${y1}, ${x2 - bend} ${y2}, ${x2} ${y2}`;
  });
  return { places, edges, nodeWidth: NODE_WIDTH, width: ranks * (NODE_WIDTH + gap) - gap, height };
}

function stack(nodes: GraphNode[], room: number): GraphLayout {
  const depths = depthsOf(nodes);
  const ordered = nodes.toSorted((a, b) => (depths.get(a.name) ?? 0) - (depths.get(b.name) ?? 0));
  const places = new Map(ordered.map((node, index) => [node.name, { x: GUTTER, y: index * (NODE_HEIGHT + GAP_Y) }]));
  const edges = edgesOf(nodes, places, (from, to) => {
    const [y1, y2] = [from.y + NODE_HEIGHT - 40, to.y + 40];
    const x = GUTTER - 2;
    const bend = Math.min(GUTTER, 14 + (y2 - y1) / 60);
    return `M ${x} ${y1} C ${x - bend} ${y1}, ${x - bend} ${y2}, ${x} ${y2}`;
  });
  const height = ordered.length * (NODE_HEIGHT + GAP_Y) - GAP_Y;
  return { places, edges, nodeWidth: Math.max(180, room - GUTTER - 2), width: room, height };
}

function edgesOf(nodes: GraphNode[], places: Map<string, Place>, draw: (from: Place, to: Place) => string) {
  return nodes.flatMap((node) =>
    node.needs.flatMap((need) => {
      const [from, to] = [places.get(need), places.get(node.name)];
      return from && to ? [{ key: `${need} ${node.name}`, from: need, path: draw(from, to) }] : [];
    }),
  );
}
