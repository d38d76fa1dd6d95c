/** Names and what they come to; a fact that is null is left out. */
import { Title } from "@mantine/core";
import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import "./facts.css";

export function Facts({ facts }: { facts: [string, ReactNode][] }) {
  const shown = facts.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return (
    <dl className="facts">
      {shown.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** A part of a page with its heading. */
export function Panel({ title, tools, children }: { title: string; tools?: ReactNode; children: ReactNode }) {
  return (
    <section className="card panel" aria-label={title}>
      <header className="panel-head">
        <Title order={2}>{title}</Title>
        {tools}
      </header>
      {children}
    </section>
  );
}

/** From one of a list back to the list. */
export function BackTo({ to, children }: { to: string; children: ReactNode }) {
  return (
    <Link className="back" href={to}>
      ‹ {children}
    </Link>
  );
}
