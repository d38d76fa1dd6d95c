import { Textarea } from "@mantine/core";
import type { FieldProps } from "@rjsf/utils";
import { useState } from "react";
import { Prose } from "../../parts/prose";

/** A param edited as JSON. Invalid JSON is kept here and not sent. */
export function JsonField({ schema, formData, fieldPathId, required, rawErrors, onChange }: FieldProps) {
  const [text, setText] = useState(formData === undefined ? "" : JSON.stringify(formData, null, 2));
  const [problem, setProblem] = useState<string | null>(null);
  const write = (next: string) => {
    setText(next);
    try {
      onChange(next.trim() ? JSON.parse(next) : undefined, fieldPathId.path);
      setProblem(null);
    } catch {
      setProblem("This is not valid JSON.");
    }
  };
  return (
    <Textarea
      id={fieldPathId.$id}
      label={schema.title}
      description={schema.description ? <Prose text={schema.description} /> : "as JSON"}
      error={problem ?? rawErrors?.join(" ")}
      required={required ?? false}
      classNames={{ input: "mono" }}
      autosize
      minRows={1}
      maxRows={10}
      placeholder={schema.type === "array" ? "[…]" : "{…}"}
      value={text}
      onChange={(event) => write(event.currentTarget.value)}
    />
  );
}
