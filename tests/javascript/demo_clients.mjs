// One unchanged JavaScript client for each name. It prints what it did, and the one line that it needs for Penstock.
// GATEWAY=http://127.0.0.1:8787 KEY=psk_… node tests/javascript/demo_clients.mjs openai

const { GATEWAY, KEY } = process.env

async function askOpenAI() {
  const { default: OpenAI } = await import('openai')
  const client = new OpenAI({ baseURL: `${GATEWAY}/v1`, apiKey: KEY })
  let video = await client.videos.create({ model: 'sim_text_to_video', prompt: 'a paper boat', seconds: '4' })
  while (video.status === 'queued' || video.status === 'in_progress') {
    await new Promise((resolve) => setTimeout(resolve, 300))
    video = await client.videos.retrieve(video.id)
  }
  const bytes = (await (await client.videos.downloadContent(video.id)).arrayBuffer()).byteLength
  return ['openai-node', `film ${video.status}, ${bytes >> 10} KB`, "baseURL: '…/v1'"]
}

async function askReplicate() {
  const { default: Replicate } = await import('replicate')
  const client = new Replicate({ auth: KEY, baseUrl: `${GATEWAY}/replicate/v1`, useFileOutput: false })
  const output = await client.run('penstock/sim_text_to_video', { input: { prompt: 'a paper boat' } })
  return ['replicate-javascript', `film at ${String(output).split('?')[0].split('/').pop()}`, "baseUrl: '…/replicate/v1'"]
}

async function askFal() {
  const { fal } = await import('@fal-ai/client')
  fal.config({ credentials: KEY, proxyUrl: { url: `${GATEWAY}/fal/proxy`, when: 'always' } })
  const { data } = await fal.subscribe('penstock/sketch_1', { input: { prompt: 'a green frog', size: '256x256' } })
  return ['@fal-ai/client', `${data.images.length} picture`, "proxyUrl: '…/fal/proxy'"]
}

async function askAiSdk() {
  const { experimental_generateVideo: generateVideo, generateImage } = await import('ai')
  const { createReplicate } = await import('@ai-sdk/replicate')
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
  const openai = createOpenAICompatible({ name: 'penstock', baseURL: `${GATEWAY}/v1`, apiKey: KEY })
  const picture = await generateImage({ model: openai.imageModel('sketch_1'), prompt: 'a red fox', size: '256x256' })
  const replicate = createReplicate({ apiToken: KEY, baseURL: `${GATEWAY}/replicate/v1` })
  const film = await generateVideo({ model: replicate.video('penstock/sim_text_to_video'), prompt: 'a paper boat' })
  const sizes = [picture.image, film.video].map((file) => `${file.uint8Array.byteLength >> 10} KB`)
  return ['Vercel AI SDK', `picture of ${sizes[0]}, film of ${sizes[1]}`, "baseURL: '…/replicate/v1'"]
}

const clients = { openai: askOpenAI, replicate: askReplicate, fal: askFal, 'ai-sdk': askAiSdk }
const [client, did, changed] = await clients[process.argv[2]]()
console.log(JSON.stringify({ client, did, changed }))
