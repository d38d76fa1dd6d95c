/** Code samples of a receiver that verifies messages. */
export function receiverCode(): Record<string, string> {
  return {
    Python: `import base64, hashlib, hmac, os, time

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))

def is_genuine(headers, body: bytes) -> bool:
    if abs(time.time() - int(headers["webhook-timestamp"])) > 300:
        return False
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    mine = "v1," + base64.b64encode(hmac.digest(SECRET, message, hashlib.sha256)).decode()
    return any(hmac.compare_digest(mine, one) for one in headers["webhook-signature"].split())`,
    JavaScript: `import { createHmac, timingSafeEqual } from "node:crypto";

const secret = Buffer.from(process.env.WEBHOOK_SECRET.replace("whsec_", ""), "base64");

export function isGenuine(headers, body) {
  const time = headers["webhook-timestamp"];
  if (Math.abs(Date.now() / 1000 - Number(time)) > 300) return false;
  const message = \`\${headers["webhook-id"]}.\${time}.\${body}\`;
  const mine = Buffer.from("v1," + createHmac("sha256", secret).update(message).digest("base64"));
  return headers["webhook-signature"].split(" ").some((one) => {
    const given = Buffer.from(one);
    return given.length === mine.length && timingSafeEqual(given, mine);
  });
}`,
  };
}
