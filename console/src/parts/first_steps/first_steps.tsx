/** First steps on the landing page. Each ticks itself from what the server or the browser knows. */
import { ActionIcon, Button, Group, Tooltip } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { fetchPage } from "../../api/queries";
import type { Job, Model, Webhook } from "../../api/shapes";
import { useSession } from "../../session";
import { Icon } from "../../shell/icons";
import { WORDS } from "../../vocabulary";
import { isHosted } from "../model_order";
import { noteStep, useStepNotes } from "./progress";
import "./first_steps.css";

/** Opens the code of the request that the page shows. */
export const SHOW_CODE = "penstock:show-code";

interface Step {
  title: string;
  isDone: boolean;
  about: ReactNode;
  action?: ReactNode;
}

/** `hasChatted`: an answer is in this tab's conversations. */
export function FirstSteps({ models, hasChatted }: { models: Model[]; hasChatted: boolean }) {
  const notes = useStepNotes();
  const { admin } = useSession();
  // A key that may only chat sees no params, and could not read the lists.
  const isShown = !notes.dismissed && models.some((model) => Object.keys(model.params).length > 0);
  const job = useAny<Job>("jobs", "/api/v1/jobs", { status: "succeeded" }, isShown);
  const webhook = useAny<Webhook>("webhooks", "/api/v1/webhooks", {}, isShown);
  if (!isShown || job === null || webhook === null) return null;
  const hosted = [...new Set(models.flatMap((model) => model.vendors.filter(isHosted)))];
  const steps: Step[] = [
    {
      title: "Make one",
      isDone: job || hasChatted,
      about: "Fill in the form and press Generate. The 3D form has a sample picture.",
    },
    {
      title: "Copy the code",
      isDone: Boolean(notes.copied),
      about: "Every request is also a complete program. Or connect a client that you have.",
      action: (
        <Group gap={6}>
          <Button size="compact-sm" variant="default" onClick={() => window.dispatchEvent(new Event(SHOW_CODE))}>
            Open the code
          </Button>
          <Button size="compact-sm" variant="default" component={Link} href="/connect">
            {WORDS.connect}
          </Button>
        </Group>
      ),
    },
    {
      title: "Add a webhook",
      isDone: webhook,
      about: "Your server receives an event when a job ends, instead of polling.",
      action: (
        <Button size="compact-sm" variant="default" component={Link} href="/webhooks">
          Open webhooks
        </Button>
      ),
    },
    vendorStep(hosted, admin !== null),
  ];
  const count = steps.filter(({ isDone }) => isDone).length;
  return (
    <section className="card first-steps" aria-labelledby="first-steps">
      <header>
        <h2 id="first-steps">First steps</h2>
        <span>{count === steps.length ? "All done" : `${count} of ${steps.length} done`}</span>
        <Tooltip label="Hide first steps">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Hide first steps"
            onClick={() => noteStep({ dismissed: true })}
          >
            <Icon name="close" size={16} />
          </ActionIcon>
        </Tooltip>
      </header>
      <ol>
        {steps.map((step, index) => (
          <StepItem key={step.title} step={step} number={index + 1} />
        ))}
      </ol>
    </section>
  );
}

function StepItem({ step, number }: { step: Step; number: number }) {
  return (
    <li data-done={step.isDone || undefined}>
      <span className="first-steps-mark" aria-hidden="true">
        {step.isDone ? <Icon name="check" size={15} /> : number}
      </span>
      <div>
        <h3>
          {step.title}
          <span className="visually-hidden">{step.isDone ? ": done" : ": to do"}</span>
        </h3>
        <p>{step.about}</p>
        {!step.isDone && step.action}
      </div>
    </li>
  );
}

function vendorStep(hosted: string[], isAdmin: boolean): Step {
  const title = "Add a vendor";
  const vendors = (
    <Button size="compact-sm" variant="default" component={Link} href="/admin/vendors">
      {isAdmin ? "Open vendors" : "Sign in as admin"}
    </Button>
  );
  if (hosted.length > 0) return { title, isDone: true, about: `Served by ${hosted.join(", ")}.` };
  const about = isAdmin
    ? "Only the built-in engines and the simulator serve. Choose a vendor and paste its key."
    : "The built-in engines serve. The server's administrator adds hosted vendors on the page Vendors.";
  return { title, isDone: false, about, action: vendors };
}

/** Return whether the list has an entry. Null until it is known. */
function useAny<T>(list: string, path: string, query: Record<string, string>, enabled: boolean): boolean | null {
  const found = useQuery({
    queryKey: [list, "any", query],
    queryFn: ({ signal }) => fetchPage<T>(path, { ...query, limit: 1 }, signal),
    enabled,
    retry: false,
  });
  if (found.error) return false;
  return found.data ? found.data.data.length > 0 : null;
}
