/** A parsed message, answer or document into which a test looks: its expectations check the fields that it names. */
// biome-ignore lint/suspicious/noExplicitAny: a type for every shape would repeat what the expectations say
export type Unchecked = any;
