// Compiles the test contracts and writes one small artifact per contract to artifacts/.
//
//   npm ci && node build.mjs            writes the artifacts
//   npm ci && node build.mjs --check    compiles and compares; exits with 1 if an artifact is not what the source gives
//
// The output depends on the sources and on the compiler pinned in package.json, on nothing else: no metadata is
// appended to the code, and source names are given without a path.

import { readFileSync, writeFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import solc from 'solc'

const here = dirname(fileURLToPath(import.meta.url))
const contracts = ['TestDollar', 'TestWallet', 'Batcher', 'Multicall']
const evmVersion = 'cancun'

const input = {
  language: 'Solidity',
  sources: Object.fromEntries(
    contracts.map((name) => [`${name}.sol`, { content: readFileSync(join(here, `${name}.sol`), 'utf8') }]),
  ),
  settings: {
    evmVersion,
    optimizer: { enabled: true, runs: 200 },
    metadata: { appendCBOR: false, bytecodeHash: 'none' },
    outputSelection: { '*': { '*': ['evm.bytecode.object', 'evm.deployedBytecode', 'evm.methodIdentifiers'] } },
  },
}

const output = JSON.parse(solc.compile(JSON.stringify(input)))
const complaints = output.errors ?? []
for (const { formattedMessage } of complaints) console.error(formattedMessage)
if (complaints.length > 0) process.exit(1)

function artifact(name) {
  const { evm } = output.contracts[`${name}.sol`][name]
  if (Object.keys(evm.deployedBytecode.immutableReferences ?? {}).length > 0) {
    throw new Error(`${name} has immutables: its runtime code could not be planted`)
  }
  return {
    contract: name,
    compiler: solc.version(),
    evm_version: evmVersion,
    selectors: evm.methodIdentifiers,
    creation: `0x${evm.bytecode.object}`,
    runtime: `0x${evm.deployedBytecode.object}`,
  }
}

const check = process.argv.includes('--check')
mkdirSync(join(here, 'artifacts'), { recursive: true })
let stale = 0
for (const name of contracts) {
  const file = join(here, 'artifacts', `${name}.json`)
  const fresh = `${JSON.stringify(artifact(name), null, 2)}\n`
  if (!check) {
    writeFileSync(file, fresh)
    console.log(`wrote artifacts/${name}.json (${fresh.length} bytes)`)
    continue
  }
  let stored
  try {
    stored = readFileSync(file, 'utf8')
  } catch {
    stored = ''
  }
  if (stored !== fresh) {
    stale += 1
    console.error(`artifacts/${name}.json is not what ${name}.sol compiles to; run: node build.mjs`)
  }
}
if (check && stale === 0) console.log(`all ${contracts.length} artifacts match their sources (solc ${solc.version()})`)
process.exit(stale === 0 ? 0 : 1)
