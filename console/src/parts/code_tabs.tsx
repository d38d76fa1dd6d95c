import { Tabs } from "@mantine/core";
import { CodeBlock } from "./code_block";
import { noteStep } from "./first_steps/progress";

/** One example in several languages. */
export function CodeTabs({ samples, label }: { samples: Record<string, string>; label: string }) {
  return (
    <Tabs defaultValue={tabOf(Object.keys(samples)[0] ?? "")} keepMounted={false}>
      <Tabs.List aria-label={label}>
        {Object.keys(samples).map((name) => (
          <Tabs.Tab key={name} value={tabOf(name)}>
            {name}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {Object.entries(samples).map(([name, code]) => (
        <Tabs.Panel key={name} value={tabOf(name)} pt="sm">
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

/** Return a tab's name as part of an id, which has no spaces: else its panel has no name. */
export function tabOf(title: string): string {
  return title.replaceAll(" ", "_");
}
