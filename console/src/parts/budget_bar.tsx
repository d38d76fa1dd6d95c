import type { ReactNode } from "react";
import type { Budget } from "../api/shapes";
import { formatMoney } from "./money";
import { formatAgo } from "./time";
import "./budget_bar.css";

const PERIODS: Record<string, string> = { day: "each day", month: "each month", total: "in total" };

/** State of a budget: spent, held for running work, and left. A null name is not shown. */
export function BudgetBar({ budget, name, actions }: { budget: Budget; name?: ReactNode; actions?: ReactNode }) {
  const cap = Number(budget.cap);
  const spent = share(budget.spent, cap);
  const held = Math.min(share(budget.held, cap), 100 - spent);
  const used = spent + held;
  const tone = used >= 100 ? "red-6" : used >= 80 ? "gate-5" : "flume-5";
  const owner = budget.tag ? `Tag ${budget.tag}` : budget.of === "key" ? "This key" : "The account";
  const title = name === undefined || budget.tag ? owner : name;
  return (
    <div className="budget">
      <div className="budget-head">
        <span>
          {title !== null && (
            <>
              <strong>{title}</strong> ·{" "}
            </>
          )}
          {formatMoney(budget.cap)} {PERIODS[budget.period]}
        </span>
        <span>{actions}</span>
      </div>
      {/* biome-ignore lint/a11y/useSemanticElements: a meter element cannot show what is held apart from what is spent */}
      <div
        className="budget-track"
        role="meter"
        aria-label={`Budget ${PERIODS[budget.period]}, ${Math.round(used)} % used`}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round(used)}
        style={{ "--tone": `var(--mantine-color-${tone})` } as React.CSSProperties}
      >
        <div className="budget-spent" style={{ width: `${spent}%` }} />
        <div className="budget-held" style={{ width: `${held}%` }} />
      </div>
      <div className="budget-foot">
        {formatMoney(budget.spent)} spent
        {Number(budget.held) > 0 && ` · ${formatMoney(budget.held)} held`} · {formatMoney(budget.left)} left
        {budget.resets_at && (
          <span title={`${new Date(budget.resets_at).toLocaleString()} (${budget.time_zone})`}>
            {" "}
            · resets {formatAgo(budget.resets_at)}
          </span>
        )}
      </div>
    </div>
  );
}

function share(amount: string, cap: number): number {
  if (cap <= 0) return Number(amount) > 0 ? 100 : 0;
  return Math.min(100, (Number(amount) / cap) * 100);
}
