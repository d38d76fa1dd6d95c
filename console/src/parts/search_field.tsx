/** A text filter in the address: what is typed counts after a moment. */
import { TextInput, type TextInputProps } from "@mantine/core";
import { useEffect, useState } from "react";

interface Props extends Omit<TextInputProps, "value" | "onChange"> {
  value: string;
  onSettle: (value: string) => void;
}

export function SearchField({ value, onSettle, ...input }: Props) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = setTimeout(() => onSettle(text.trim()), 350);
    return () => clearTimeout(timer);
  }, [text, value, onSettle]);
  return <TextInput {...input} value={text} onChange={(event) => setText(event.currentTarget.value)} />;
}
