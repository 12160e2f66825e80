import { answer } from "../provider/reply.ts";
import { startProvider } from "../provider/server.ts";

// A scripted provider that answers every request at once. Prints its address; ends with its stdin.
const { baseUrls, apiKey } = await startProvider({ otherwise: () => answer("Yes.") });
process.stdout.write(`${JSON.stringify({ baseUrls, apiKey })}\n`);
process.stdin.resume().on("end", () => process.exit(0));
