import { CodeBlock } from "./code_block";

/** Anything, as indented JSON. */
export function JsonView({
  value,
  label = "JSON",
  maxHeight = 420,
}: {
  value: unknown;
  label?: string;
  maxHeight?: number;
}) {
  return <CodeBlock code={JSON.stringify(value, null, 2)} label={label} maxHeight={maxHeight} />;
}
