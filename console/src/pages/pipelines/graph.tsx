/** A pipeline as a graph: its steps in columns, lines from each to those that take its outputs. */
import { useElementSize } from "@mantine/hooks";
import { useMemo } from "react";
import type { Pipeline } from "../../api/shapes";
import { layOut, NODE_HEIGHT } from "./graph_layout";
import { StepNode } from "./step_node";

export function Graph({ pipeline, onRetry }: { pipeline: Pipeline; onRetry: (step: string) => void }) {
  const { ref, width } = useElementSize<HTMLElement>();
  const shape = JSON.stringify(pipeline.steps.map(({ name, needs }) => ({ name, needs })));
  const layout = useMemo(() => (width > 0 ? layOut(JSON.parse(shape), width) : null), [shape, width]);
  const status = new Map(pipeline.steps.map((step) => [step.name, step.status]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <section className="graph" ref={ref} aria-label="Graph of the steps" tabIndex={0}>
      {layout && (
        <div className="graph-plane" style={{ width: layout.width, height: layout.height }}>
          <svg width={layout.width} height={layout.height} aria-hidden="true" focusable="false">
            <defs>
              <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
                <path d="M0 0 8 4 0 8z" className="graph-arrow" />
              </marker>
            </defs>
            {layout.edges.map(({ key, from, path }) => (
              <path key={key} d={path} className="graph-edge" data-status={status.get(from)} markerEnd="url(#arrow)" />
            ))}
          </svg>
          <ol className="graph-steps" aria-label="Steps of the pipeline">
            {pipeline.steps.map((step) => {
              const place = layout.places.get(step.name);
              return (
                <li
                  key={step.name}
                  style={{ left: place?.x, top: place?.y, width: layout.nodeWidth, height: NODE_HEIGHT }}
                >
                  <StepNode step={step} isDone={pipeline.done} onRetry={() => onRetry(step.name)} />
                </li>
              );
            })}
          </ol>
        </div>
      )}
    </section>
  );
}
