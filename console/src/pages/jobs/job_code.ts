/** Code samples that fetch a job. */
import type { Job } from "../../api/shapes";

export function jobCode(origin: string, job: Job): Record<string, string> {
  const address = `${origin}/api/v1/jobs/${job.id}`;
  const primary = job.outputs.find((output) => output.role === "primary");
  const name = primary ? (new URL(primary.url, origin).pathname.split("/").pop() ?? "result") : "result";
  const key = '-H "Authorization: Bearer $PENSTOCK_API_KEY"';
  return {
    curl: `# the record; ?wait=30 holds the answer until it is done
curl '${address}?wait=30' ${key}

# what happens, as it happens
curl -N ${address}/events ${key}${
      primary
        ? `

# the output; a key of the account opens it
curl -o ${name} ${origin}/api/v1/assets/${primary.id}/${name} ${key}`
        : ""
    }`,
    Python: `from penstock.client import Client  # reads PENSTOCK_API_KEY

job = Client("${origin}").job("${job.id}")
job.wait().save("${name}")`,
    JavaScript: `const headers = { Authorization: \`Bearer \${process.env.PENSTOCK_API_KEY}\` };

let job;
do job = await (await fetch("${address}?wait=30", { headers })).json();
while (!job.done);
if (job.error) throw new Error(job.error.message);
console.log(job.status, job.outputs[0]?.url);`,
  };
}
