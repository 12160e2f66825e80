// Pushes a message into a running agent and waits until the model's provider has accepted it.
// It starts a daemon if none runs. In a project of your own, import from "pi-rpcd/client".
import { connect, isAgentSettled, isToolExecutionStart } from "../client/index.ts";

const client = await connect({ start: true });
const session = await client.createSession({ cwd: process.cwd() });
const events = session.events();
const { disposition } = await session.prompt("Run the tests in the background, and tell me how it went.");
console.log(`pi has taken the prompt: ${disposition}.`);
for await (const { event } of events) if (isToolExecutionStart(event) || isAgentSettled(event)) break;
const push = session.push({ customType: "build", content: "The nightly build is green." });
const { evidence, attempts } = await push.delivered;
console.log(`The model has it. Evidence: ${evidence}; requests that carried it: ${attempts.length}.`);

// The next receipt: the answer to that request is complete.
const { history } = await push.answered;
console.log(`It went through ${history.map(({ state }) => state).join(", ")}.`);
// Without this the session stays, for this client or another.
await session.close();
await client.close();
