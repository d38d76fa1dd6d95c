/** Usage in a range: sums, a plot and a table. */
import { Alert, Loader, SegmentedControl, Text } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { call } from "../../api/call";
import type { UsageStatement } from "../../api/shapes";
import { useFilters } from "../address_filters";
import { DataTable } from "../data_table";
import { ErrorNotice } from "../error_notice";
import { Panel } from "../facts";
import { formatMoney, Money } from "../money";
import { formatCount } from "../numbers";
import { BarChart } from "./bar_chart";
import { CsvButton } from "./csv_button";
import { type Group, isDimension, MEASURES, slotsOf, sumsOf, titleOf } from "./measures";
import { isByMonth, stepsOf } from "./range";
import { RangePicker, useRange } from "./range_picker";
import "./statement.css";
import { WORDS } from "../../vocabulary";

interface Props {
  path: "/api/v1/usage" | "/admin/v1/usage";
  groups: Group[];
  /** Begins with "admin" for the administrator's. */
  queryKey: string[];
  empty: ReactNode;
  aside?: (statement: UsageStatement) => ReactNode;
}

export function Statement({ path, groups, queryKey, empty, aside }: Props) {
  const [search, change] = useFilters();
  const range = useRange();
  const group = groups.find((each) => each === search.get("by")) ?? groups[0] ?? "model";
  const query = { ...range, by: `${isByMonth(range) ? "month" : "day"},${group}` };
  const usage = useQuery({
    queryKey: [...queryKey, query],
    queryFn: ({ signal }) => call<UsageStatement>(path, { query, signal }),
    placeholderData: keepPreviousData,
  });
  return (
    <>
      <div className="statement-bar">
        <RangePicker />
        <SegmentedControl
          aria-label="Group by"
          size="xs"
          className="groups"
          data={groups.map((value) => ({ value, label: titleOf(value) }))}
          value={group}
          onChange={(by) => change({ by: by === groups[0] ? null : by })}
        />
        <CsvButton path={path} query={query} />
      </div>
      {usage.error && <ErrorNotice error={usage.error} onRetry={() => void usage.refetch()} />}
      {!usage.data && !usage.error && <Loader type="dots" size="sm" role="status" aria-label={WORDS.loading} />}
      {usage.data && (
        <div className="statement">
          <Told statement={usage.data} group={groupOf(usage.data, group)} empty={empty} />
          {aside?.(usage.data)}
        </div>
      )}
    </>
  );
}

/** While the next statement is on its way, the last one is shown as it was grouped. */
function groupOf(statement: UsageStatement, wanted: Group): Group {
  return (statement.by[1] as Group | undefined) ?? wanted;
}

function Told({ statement, group, empty }: { statement: UsageStatement; group: Group; empty: ReactNode }) {
  const [search, change] = useFilters();
  const { data, total } = statement;
  const measure = MEASURES.find((each) => each.id === search.get("plot")) ?? MEASURES[0];
  if (data.length === 0 || !measure) return empty;
  const { names, slots } = slotsOf(data, stepsOf(statement), group, measure);
  const sum = data.reduce((so, line) => so + measure.of(line), 0);
  return (
    <>
      <Tiles statement={statement} />
      {total.unpriced > 0 && (
        <Alert className="notice notice-gate" color="gate" role="status">
          {formatCount(total.unpriced)} of them have no known cost, so the spend is a lower bound.
        </Alert>
      )}
      <Panel
        title={`${measure.title} over time`}
        tools={
          <SegmentedControl
            aria-label="Measure"
            size="xs"
            data={MEASURES.map(({ id, title }) => ({ value: id, label: title }))}
            value={measure.id}
            onChange={(id) => change({ plot: id === "spend" ? null : id })}
          />
        }
      >
        <BarChart
          names={names}
          slots={slots}
          format={measure.format}
          label={`${measure.title} from ${statement.from} to ${statement.to}: ${measure.format(sum)} in total; the table below groups it by ${titleOf(group)}`}
        />
      </Panel>
      <Table statement={statement} group={group} />
      {group === "tag" && (
        <Text size="xs" c="dimmed" mt="xs">
          A request with several tags is in the line of each. The total counts it once.
        </Text>
      )}
    </>
  );
}

function Tiles({ statement: { total } }: { statement: UsageStatement }) {
  const tiles: [string, string][] = [
    [WORDS.spend, formatMoney(total.cost)],
    [WORDS.jobs, formatCount(total.jobs)],
    ["Chat requests", formatCount(total.requests)],
    [WORDS.tokens, formatCount(total.total_tokens)],
    ["Failed", formatCount(total.failed)],
  ];
  return (
    <div className="tiles">
      {tiles.map(([name, value]) => (
        <dl className="card tile" key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </dl>
      ))}
    </div>
  );
}

function Table({ statement, group }: { statement: UsageStatement; group: Group }) {
  const sums = sumsOf(statement.data, group);
  const { total } = statement;
  const most = Math.max(...sums.map((sum) => sum.cost), 0);
  return (
    <DataTable
      label={`Usage by ${titleOf(group)}`}
      rows={sums}
      rowKey={(sum) => sum.id}
      foot={[
        "Total",
        <Money key="cost" amount={total.cost} />,
        formatCount(total.jobs),
        formatCount(total.requests),
        formatCount(total.total_tokens),
        formatCount(total.failed),
      ]}
      columns={[
        {
          title: `${titleOf(group)[0]?.toUpperCase()}${titleOf(group).slice(1)}`,
          cell: (sum) => (
            <>
              {sum.label}
              {sum.label !== sum.id && !isDimension(group) && (
                <Text size="xs" c="dimmed" className="mono">
                  {sum.id}
                </Text>
              )}
            </>
          ),
        },
        {
          title: WORDS.spend,
          end: true,
          cell: (sum) => (
            <>
              <Money amount={sum.cost} />
              <span className="share" aria-hidden="true">
                <span style={{ width: `${most > 0 ? (sum.cost / most) * 100 : 0}%` }} />
              </span>
            </>
          ),
        },
        { title: WORDS.jobs, cell: (sum) => formatCount(sum.jobs), end: true, wide: true },
        { title: WORDS.requests, cell: (sum) => formatCount(sum.requests), end: true, wide: true },
        { title: WORDS.tokens, cell: (sum) => formatCount(sum.tokens), end: true, wide: true },
        { title: "Failed", cell: (sum) => formatCount(sum.failed), end: true, wide: true },
      ]}
    />
  );
}
