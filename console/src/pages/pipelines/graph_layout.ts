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
/** Room for an edge between nodes that it passes. */
const LANE_HEIGHT = 8;
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

/** What stands in a column: a node, or a lane on which an edge passes the nodes of the column. */
interface Cell {
  name: string;
  depth: number;
  height: number;
  /** Names of the cells before it that an edge comes from. */
  before: string[];
}

/** The cells of an edge, from node to node over the lanes between. */
type Route = string[];

function columns(nodes: GraphNode[], room: number): GraphLayout {
  const { cells, routes } = cellsOf(nodes);
  const ranks = Math.max(...cells.map((cell) => cell.depth), 0) + 1;
  const gap = Math.max(GAP_X, Math.min(110, (room - ranks * NODE_WIDTH) / Math.max(1, ranks - 1)));
  const centres = new Map<string, Place>();
  for (let depth = 0; depth < ranks; depth += 1) {
    const column = cells.filter((cell) => cell.depth === depth);
    const weights = new Map(column.map((cell) => [cell.name, meanOf(cell.before.map((name) => centres.get(name)?.y))]));
    const ordered = column.toSorted((a, b) => (weights.get(a.name) ?? 0) - (weights.get(b.name) ?? 0));
    let y = topOf(ordered);
    for (const { name, height } of ordered) {
      centres.set(name, { x: depth * (NODE_WIDTH + gap), y: y + height / 2 });
      y += height + GAP_Y;
    }
  }
  const tops = cells.map(({ name, height }) => (centres.get(name)?.y ?? 0) - height / 2);
  const top = Math.min(...tops, 0);
  const bottom = Math.max(...cells.map(({ height }, index) => (tops[index] ?? 0) + height), 0);
  const at = (name: string): Place => ({ x: centres.get(name)?.x ?? 0, y: (centres.get(name)?.y ?? 0) - top });
  const places = nodes.map(({ name }): [string, Place] => [name, { x: at(name).x, y: at(name).y - NODE_HEIGHT / 2 }]);
  return {
    places: new Map(places),
    edges: routes.map((route) => ({ ...endsOf(route), path: pathOver(route.map(at), gap) })),
    nodeWidth: NODE_WIDTH,
    width: ranks * (NODE_WIDTH + gap) - gap,
    height: bottom - top,
  };
}

/** Return the nodes with lanes for all edges that skip a column. Edges of one node share their lanes. */
function cellsOf(nodes: GraphNode[]): { cells: Cell[]; routes: Route[] } {
  const depths = depthsOf(nodes);
  const cells = new Map<string, Cell>();
  for (const { name } of nodes) {
    cells.set(name, { name, depth: depths.get(name) ?? 0, height: NODE_HEIGHT, before: [] });
  }
  const routes: Route[] = [];
  for (const node of nodes) {
    const end = cells.get(node.name);
    for (const need of node.needs) {
      const start = cells.get(need);
      if (!start || !end || start === end) continue;
      const route = [need];
      for (let depth = start.depth + 1; depth < end.depth; depth += 1) {
        const lane = `${need} past ${depth}`;
        if (!cells.has(lane)) cells.set(lane, { name: lane, depth, height: LANE_HEIGHT, before: route.slice(-1) });
        route.push(lane);
      }
      end.before.push(...route.slice(-1));
      routes.push([...route, node.name]);
    }
  }
  return { cells: [...cells.values()], routes };
}

/** Return the top of a column whose nodes are around 0; lanes beyond them move no node. */
function topOf(column: Cell[]): number {
  const isNode = (cell: Cell) => cell.height === NODE_HEIGHT;
  const [first, last] = [column.findIndex(isNode), column.findLastIndex(isNode)];
  const heightOf = (some: Cell[]) => some.reduce((sum, { height }) => sum + height + GAP_Y, 0);
  return -(heightOf(column.slice(first, last + 1)) - GAP_Y) / 2 - heightOf(column.slice(0, first));
}

function meanOf(values: (number | undefined)[]): number {
  const known = values.filter((value) => value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : 0;
}

function endsOf(route: Route): { key: string; from: string } {
  const from = route[0] ?? "";
  return { key: `${from} ${route.at(-1)}`, from };
}

/** Return a path through the centres of cells: it bends between columns, and is straight in a lane. */
function pathOver(centres: Place[], gap: number): string {
  return centres
    .slice(1)
    .map((to, index) => {
      const from = centres[index] ?? to;
      const x1 = from.x + NODE_WIDTH;
      const x2 = to.x - (index === centres.length - 2 ? 2 : 0);
      const start = index === 0 ? `M ${x1} ${from.y}` : `H ${x1}`;
      return `${start} C ${x1 + gap / 2} ${from.y}, ${x2 - gap / 2} ${to.y}, ${x2} ${to.y}`;
    })
    .join(" ");
}

function stack(nodes: GraphNode[], room: number): GraphLayout {
  const depths = depthsOf(nodes);
  const ordered = nodes.toSorted((a, b) => (depths.get(a.name) ?? 0) - (depths.get(b.name) ?? 0));
  const places = new Map(ordered.map((node, index) => [node.name, { x: GUTTER, y: index * (NODE_HEIGHT + GAP_Y) }]));
  const edges = cellsOf(nodes).routes.map((route) => {
    const { key, from } = endsOf(route);
    const y1 = (places.get(from)?.y ?? 0) + NODE_HEIGHT - 40;
    const y2 = (places.get(route.at(-1) ?? "")?.y ?? 0) + 40;
    const x = GUTTER - 2;
    const bend = Math.min(GUTTER, 14 + (y2 - y1) / 60);
    return { key, from, path: `M ${x} ${y1} C ${x - bend} ${y1}, ${x - bend} ${y2}, ${x} ${y2}` };
  });
  const height = ordered.length * (NODE_HEIGHT + GAP_Y) - GAP_Y;
  return { places, edges, nodeWidth: Math.max(180, room - GUTTER - 2), width: room, height };
}
