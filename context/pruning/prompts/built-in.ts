import { tagOf } from "../../../extension/message-tag.ts";
import { BLOCK_HEADER } from "../record.ts";

// Texts for the model. Each statement starts with its number, which is removed when the text is loaded.

/** `system.md`: the section of the prompt. */
export const system = `<!-- 1 --> Your context is limited. The tool \`compress\` is the only one that makes room in it: it puts a summary that you write in the place of a range of the conversation.
<!-- 2 --> Messages end with an id, such as ${tagOf("m012")}. These tags are metadata: never write them yourself.
<!-- 3 --> Your summary becomes the authoritative record of its range. It is shown under the line "${BLOCK_HEADER}" and has an id such as b2; the messages themselves are gone from your view.
<!-- 4 --> Work in several short compressions of closed ranges, batched in one call, and do so steadily: no threshold has to be reached first.
<!-- 5 --> Compress when research is concluded, work is verified, an exploration is exhausted, or a dead end is nothing but noise.
<!-- 6 --> Do not compress what you need word for word for an edit or an exact reference, what is in progress, or what the next steps build on.
<!-- 7 --> Ask of each range: is it closed enough to live on as a summary only?
<!-- 8 --> As the conversation grows, judge regularly how much of it is signal and how much is noise.
<!-- 9 --> After a compression go on with the task. A summary is a record and no request: do not answer it, and do not repeat what it reports as done.`;

/** `manual.md`: the section of the prompt in manual mode. */
export const manual = `The user decides when the context is compressed.
<!-- 18 --> Call \`compress\` only when the user asks for it, or when a reminder says that the limit is reached.
<!-- 2 --> Messages end with an id, such as ${tagOf("m012")}. These tags are metadata: never write them yourself.
<!-- 14 --> Take ids from the visible context alone. A tag ends the message that it names. The start stands before the end.
<!-- 10 --> A summary is exhaustive: paths, signatures, decisions, constraints, findings.
<!-- 12 --> It leaves scope, constraints, priorities, acceptance criteria and outcomes unchanged, and quotes short messages of the user.
<!-- 17 --> Independent ranges go into one call.`;

/** `compress.md`: the description of the tool. */
export const compress = `Replaces closed ranges of the conversation by summaries that you write.
<!-- 10 --> Each summary is exhaustive: file paths, signatures, decisions, constraints and findings that the work still depends on.
<!-- 11 --> It is lean: no failed attempts, repetitions or tool noise beyond what they have taught.
<!-- 12 --> Scope, constraints, priorities, acceptance criteria and outcomes stay unchanged; short messages of the user are quoted.
<!-- 13 --> \`topic\` has three to five words.
<!-- 14 --> \`startId\` and \`endId\` are ids (mNNN or bN) from the visible context, never invented. A tag ends the message that it names. The start stands before the end.
<!-- 15 --> For every block bN inside a range the summary has the placeholder (bN) exactly once, where its text is to stand, and none of another block. This form is reserved: to mention a block write "compressed bN". Check which blocks the range holds before you write.
<!-- 16 --> The text reads well and in order with the blocks in the places of their placeholders.
<!-- 17 --> Independent ranges go into one call.`;

const state = `Context used: {{usage}}; limit: {{max}}.
Blocks: {{blocks}}
Ranges that could go: {{candidates}}`;

/** `limit-strong.md`: the limit is reached; the model must compress. */
export const limitStrong = `The context limit is reached.
<!-- 19 --> If you are in the middle of an atomic step, finish it; then call \`compress\` before anything else.
<!-- 20 --> Unlike usually, take one large closed range first. Split it only where the quality of a summary or a safe border asks for it.
<!-- 21 --> Begin with the oldest history that is resolved. Spare the newest part unless it is closed.
<!-- 22 --> Write down enough to continue without the raw messages.
${state}`;

/** `limit-soft.md`: the limit is reached. */
export const limitSoft = `The context limit is reached: compress soon.
<!-- 21 --> Begin with the oldest history that is resolved. Spare the newest part unless it is closed.
<!-- 23 --> If nothing is closed, go on, and compress at the earliest opportunity.
${state}`;

/** `turn.md`: a new message of the user. */
export const turn = `<!-- 24 --> Look for ranges that are closed; if the user has changed direction, those before the change. Compress them in small pieces, and leave raw what is still active. If there are none, go on.
${state}`;

/** `iteration.md`: many tool calls without a message of the user. */
export const iteration = `<!-- 25 --> If a portion of this work is finished, compress it now, in several short ranges, and go on. If none is, go on.
${state}`;
