import { Tabs } from "@mantine/core";
import { CodeBlock } from "./code_block";
import { noteStep } from "./first_steps/progress";

/** One example in several languages. */
export function CodeTabs({ samples, label }: { samples: Record<string, string>; label: string }) {
  const names = Object.keys(samples);
  return (
    <Tabs defaultValue={names[0] ?? null} keepMounted={false}>
      <Tabs.List aria-label={label}>
        {names.map((name) => (
          <Tabs.Tab key={name} value={name}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {Object.entries(samples).map(([name, code]) => (
        <Tabs.Panel key={name} value={name} pt="sm">
          <CodeBlock
            code={code}
            label={`${label}, ${name}`}
            maxHeight={420}
            onCopy={() => noteStep({ copied: true })}
          />
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
