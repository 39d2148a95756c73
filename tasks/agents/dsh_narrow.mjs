// Keeps the tools of every agent of a DeepSeek Harness process to those of `config.allow`. It can only take away.
export const name = 'sessionmill-narrow'
export const inject = ['tools']

export function apply(ctx, config) {
  ctx.on('agent/created', (event) => {
    const tools = (event.agent ?? event).ctx.tools
    if (config.allow.length > 0) tools.restrict({ allow: config.allow })
    else tools.guard((call) => `the tool ${call.name} is denied: this agent has none`)
  })
}
