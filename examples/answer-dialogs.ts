// Answers the questions of a session's extensions: yes to a confirm, the first option of a select, no to all else.
// A daemon must run (pi-rpcd start). In a project of your own, import from "pi-rpcd/client".
import { connect } from "../client/index.ts";

const client = await connect();
const session = await client.createSession({ cwd: process.cwd(), dialogPolicy: { kind: "wait" } });
const responder = session.onDialog(({ method, title, options = [] }, { signal }) => {
  signal.addEventListener("abort", () => console.log(`"${title}" is over.`));
  console.log(`${method}: ${title}`);
  if (method === "confirm") return { confirmed: true };
  const [first] = options;
  return first === undefined ? { cancelled: true } : { value: first };
});
await responder.ready;
console.log(await session.promptAndWait("Run the tests."));
responder.stop();
await session.close();
await client.close();
