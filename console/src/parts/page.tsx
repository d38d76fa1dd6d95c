import { Group, Loader, Title } from "@mantine/core";
import { useDocumentTitle } from "@mantine/hooks";
import type { ReactNode } from "react";
import { WORDS } from "../vocabulary";

/** A page's frame: its name (also the tab's), a sentence, what can be done, and the rest. */
export function Page({
  title,
  back,
  about,
  actions,
  children,
}: {
  title: string;
  /** The way to the list that it is one of. */
  back?: ReactNode;
  about?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}) {
  useDocumentTitle(`${title} - Penstock`);
  return (
    <div className="page">
      {back}
      <header className="page-head">
        <Title order={1}>{title}</Title>
        {typeof about === "string" ? <p>{about}</p> : about && <div>{about}</div>}
        {actions && (
          <Group className="actions" gap="xs">
            {actions}
          </Group>
        )}
      </header>
      {children}
    </div>
  );
}

export function PageLoading() {
  return (
    <Group justify="center" mt="20vh" role="status" aria-label={WORDS.loading}>
      <Loader size="sm" type="dots" />
    </Group>
  );
}
