import { Button, Stack, Text, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { Icon, type IconName } from "../shell/icons";
import { CodeBlock } from "./code_block";

interface Props {
  title: string;
  icon?: IconName;
  /** Explanation of what appears here, and how to create it. */
  children: ReactNode;
  /** A command that makes the first one. */
  code?: string;
  action?: { label: string; to?: string; onClick?: () => void } | undefined;
}

/** Empty state: explains what appears here, and how to begin. */
export function EmptyState({ title, icon, children, code, action }: Props) {
  return (
    <Stack className="card" align="flex-start" gap="sm" p="xl" maw={680}>
      {icon && (
        <span style={{ color: "var(--mantine-primary-color-light-color)" }}>
          <Icon name={icon} size={28} />
        </span>
      )}
      <Title order={2}>{title}</Title>
      <Text c="dimmed" component="div">
        {children}
      </Text>
      {code && (
        <div style={{ alignSelf: "stretch" }}>
          <CodeBlock code={code} />
        </div>
      )}
      {action?.to && (
        <Button component={Link} href={action.to}>
          {action.label}
        </Button>
      )}
      {action?.onClick && <Button onClick={action.onClick}>{action.label}</Button>}
    </Stack>
  );
}
