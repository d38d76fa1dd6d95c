import { Button } from "@mantine/core";
import { Link } from "wouter";
import type { Model } from "../../api/shapes";
import { Identifier } from "../../parts/code_block";
import { CodeTabs } from "../../parts/code_tabs";
import { DataTable } from "../../parts/data_table";
import { BackTo, Facts, Panel } from "../../parts/facts";
import { DIRECT_KINDS, isPlayable } from "../../parts/model_order";
import { formatCount } from "../../parts/numbers";
import { Page } from "../../parts/page";
import { priceLine, priceParts } from "../../parts/price_words";
import { formatSeconds } from "../../parts/time";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { Health, standingsOf, useVendors } from "./health";
import { modelCode } from "./model_code";
import { ParamsTable } from "./params_table";

export function ModelPage({ model }: { model: Model }) {
  const id = encodeURIComponent(model.id);
  return (
    <Page
      back={<BackTo to="/models">{WORDS.models}</BackTo>}
      title={model.title}
      about={model.title === model.id ? undefined : <Identifier id={model.id} />}
      actions={
        <>
          {!DIRECT_KINDS.has(model.kind) && (
            <Button variant="default" component={Link} href={`/jobs?model=${id}`}>
              Its jobs
            </Button>
          )}
          {isPlayable(model) && (
            <Button component={Link} href={`/playground/${id}`} leftSection={<Icon name="playground" size={16} />}>
              Open in playground
            </Button>
          )}
        </>
      }
    >
      <div className="split">
        <div>
          <ParamsTable model={model} />
          {model.prices.length > 1 && <Prices model={model} />}
        </div>
        <div>
          <Panel title={WORDS.details}>
            <ModelFacts model={model} />
          </Panel>
          {Object.keys(model.example).length > 0 && (
            <Panel title="Example">
              <CodeTabs samples={modelCode(location.origin, model)} label="Example request" />
            </Panel>
          )}
        </div>
      </div>
    </Page>
  );
}

function ModelFacts({ model }: { model: Model }) {
  const vendors = useVendors();
  const standings = standingsOf(vendors.data ?? [], model.id);
  const typical = model.typical_seconds;
  return (
    <Facts
      facts={[
        [WORDS.kind, model.kind],
        [WORDS.price, model.price === null ? "unknown" : <Lines key="price" lines={priceParts(model.price)} />],
        [WORDS.servedBy, model.vendors.join(", ")],
        [
          WORDS.health,
          standings.length > 0 &&
            standings.map((standing) => (
              <div key={standing.vendor}>
                <Health standing={standing} />
                {standing.why && <div className="model-id">{standing.why}</div>}
              </div>
            )),
        ],
        ["Median duration", typical && formatSeconds(typical.p50)],
        ["90th percentile", typical && formatSeconds(typical.p90)],
        ["Measured on", typical && `${formatCount(typical.jobs)} jobs here`],
      ]}
    />
  );
}

function Lines({ lines }: { lines: string[] }) {
  return lines.map((line) => <div key={line}>{line}</div>);
}

/** Current and future prices of each vendor. */
function Prices({ model }: { model: Model }) {
  return (
    <DataTable
      label="Prices"
      rows={model.prices}
      rowKey={(term) => `${term.vendor} ${term.from}`}
      columns={[
        { title: WORDS.vendor, cell: (term) => term.vendor },
        { title: WORDS.price, cell: (term) => priceLine(term.price) },
        { title: WORDS.from, cell: (term) => day(term.from), wide: true },
        { title: "Until", cell: (term) => day(term.until), wide: true },
      ]}
    />
  );
}

function day(time: string | null): string {
  return time === null ? "" : new Date(time).toLocaleDateString();
}
