// Time and chance, both from the ledger: the host sets the clock at each delivery and seeds Math.random.

export function now(): Date {
  return new Date();
}

export function uuid(): string {
  let hex = "";
  for (let i = 0; i < 8; i++) hex += Math.floor(Math.random() * 0x10000).toString(16).padStart(4, "0");
  const variant = "89ab"[parseInt(hex[16], 16) & 3];
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
}
