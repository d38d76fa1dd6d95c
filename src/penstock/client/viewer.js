// Draws the GLB in `GLB` (base64) on the canvas. Drag to rotate, scroll to zoom. No network access.
"use strict";
const canvas = document.querySelector("canvas");
const gl = canvas.getContext("webgl2", { antialias: true });
const say = (text) => { document.body.textContent = text; };

const SIZES = { SCALAR: 1, VEC2: 2, VEC3: 3, VEC4: 4 };
const ARRAYS = { 5120: Int8Array, 5121: Uint8Array, 5122: Int16Array, 5123: Uint16Array, 5125: Uint32Array, 5126: Float32Array };
const SCALES = { 5120: 127, 5121: 255, 5122: 32767, 5123: 65535 };

function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  if (view.getUint32(0, true) !== 0x46546c67) throw new Error("not a GLB");
  const length = view.getUint32(12, true);
  const json = JSON.parse(new TextDecoder().decode(bytes.subarray(20, 20 + length)));
  return { json, start: 28 + length, buffer: bytes.buffer };
}

function numbers(file, index) {
  const accessor = file.json.accessors[index];
  const piece = file.json.bufferViews[accessor.bufferView];
  const kind = ARRAYS[accessor.componentType];
  const width = SIZES[accessor.type];
  const stride = piece.byteStride || kind.BYTES_PER_ELEMENT * width;
  const begin = file.start + (piece.byteOffset || 0) + (accessor.byteOffset || 0);
  const scale = accessor.normalized ? SCALES[accessor.componentType] : 1;
  const out = new (kind === Float32Array || scale !== 1 ? Float32Array : kind)(accessor.count * width);
  const bytes = new Uint8Array(file.buffer);
  for (let row = 0; row < accessor.count; row += 1) {
    const at = begin + row * stride;
    const values = new kind(bytes.slice(at, at + kind.BYTES_PER_ELEMENT * width).buffer);
    for (let column = 0; column < width; column += 1) out[row * width + column] = values[column] / scale;
  }
  return { values: out, width, count: accessor.count };
}

function multiply(a, b) {
  const out = new Float32Array(16);
  for (let i = 0; i < 16; i += 1) for (let k = 0; k < 4; k += 1) out[i] += a[(i % 4) + k * 4] * b[(i >> 2) * 4 + k];
  return out;
}

function matrixOf(node) {
  if (node.matrix) return new Float32Array(node.matrix);
  const [x, y, z, w] = node.rotation || [0, 0, 0, 1];
  const [a, b, c] = node.scale || [1, 1, 1];
  const [tx, ty, tz] = node.translation || [0, 0, 0];
  return new Float32Array([
    a * (1 - 2 * (y * y + z * z)), a * 2 * (x * y + z * w), a * 2 * (x * z - y * w), 0,
    b * 2 * (x * y - z * w), b * (1 - 2 * (x * x + z * z)), b * 2 * (y * z + x * w), 0,
    c * 2 * (x * z + y * w), c * 2 * (y * z - x * w), c * (1 - 2 * (x * x + y * y)), 0,
    tx, ty, tz, 1,
  ]);
}

function meshes(json) {
  const found = [];
  const visit = (index, parent) => {
    const node = json.nodes[index];
    const matrix = multiply(parent, matrixOf(node));
    if (node.mesh !== undefined) for (const part of json.meshes[node.mesh].primitives) found.push({ part, matrix });
    for (const child of node.children || []) visit(child, matrix);
  };
  const one = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]);
  for (const root of json.scenes[json.scene || 0].nodes) visit(root, one);
  return found;
}

const VERTEX = `#version 300 es
in vec3 place; in vec3 normal; in vec2 spot; in vec4 tint; uniform mat4 world, view, lens; out vec3 facing; out vec2 where; out vec4 tinted;
void main() { facing = mat3(view) * mat3(world) * normal; where = spot; tinted = tint; gl_Position = lens * view * world * vec4(place, 1.0); }`;
const FRAGMENT = `#version 300 es
precision highp float; in vec3 facing; in vec2 where; in vec4 tinted; uniform vec4 color; uniform sampler2D skin; uniform bool skinned; out vec4 seen;
void main() { vec4 own = color * tinted; if (skinned) { own *= texture(skin, where); }
  float light = 0.55 + 0.45 * abs(dot(normalize(facing), normalize(vec3(0.3, 0.5, 0.8)))); seen = vec4(own.rgb * light, 1.0); }`;

function compile() {
  const program = gl.createProgram();
  for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  return program;
}

function flatNormals(places, indices) {
  const out = new Float32Array(places.values.length);
  const p = places.values;
  for (let i = 0; i + 2 < indices.length; i += 3) {
    const [a, b, c] = [indices[i] * 3, indices[i + 1] * 3, indices[i + 2] * 3];
    const u = [p[b] - p[a], p[b + 1] - p[a + 1], p[b + 2] - p[a + 2]];
    const v = [p[c] - p[a], p[c + 1] - p[a + 1], p[c + 2] - p[a + 2]];
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]];
    for (const at of [a, b, c]) for (let k = 0; k < 3; k += 1) out[at + k] += n[k];
  }
  return { values: out, width: 3 };
}

async function texture(file, index) {
  const image = file.json.images[file.json.textures[index].source];
  const piece = file.json.bufferViews[image.bufferView];
  const begin = file.start + (piece.byteOffset || 0);
  const blob = new Blob([new Uint8Array(file.buffer, begin, piece.byteLength)], { type: image.mimeType });
  const bitmap = await createImageBitmap(blob);
  const made = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, made);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, gl.RGBA, gl.UNSIGNED_BYTE, bitmap);
  gl.generateMipmap(gl.TEXTURE_2D);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR);
  return made;
}

function attribute(program, name, data, fallback) {
  const slot = gl.getAttribLocation(program, name);
  if (slot < 0) return;
  if (!data) { gl.vertexAttrib4f(slot, ...fallback); return; }
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, Float32Array.from(data.values), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(slot);
  gl.vertexAttribPointer(slot, data.width, gl.FLOAT, false, 0, 0);
}

async function prepare(file, program, { part, matrix }) {
  const places = numbers(file, part.attributes.POSITION);
  const indices = part.indices === undefined ? Uint32Array.from({ length: places.count }, (_, i) => i) : Uint32Array.from(numbers(file, part.indices).values);
  const get = (name) => (part.attributes[name] === undefined ? null : numbers(file, part.attributes[name]));
  const shape = gl.createVertexArray();
  gl.bindVertexArray(shape);
  attribute(program, "place", places);
  attribute(program, "normal", get("NORMAL") || flatNormals(places, indices));
  attribute(program, "spot", get("TEXCOORD_0"), [0, 0, 0, 1]);
  attribute(program, "tint", get("COLOR_0"), [1, 1, 1, 1]);
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
  const look = ((file.json.materials || [])[part.material] || {}).pbrMetallicRoughness || {};
  const skin = look.baseColorTexture ? await texture(file, look.baseColorTexture.index) : null;
  return { shape, matrix, skin, places, count: indices.length, color: look.baseColorFactor || [1, 1, 1, 1] };
}

function bounds(parts) {
  const low = [Infinity, Infinity, Infinity];
  const high = [-Infinity, -Infinity, -Infinity];
  for (const { places, matrix: m } of parts) {
    for (let i = 0; i < places.values.length; i += 3) {
      const [x, y, z] = places.values.subarray(i, i + 3);
      for (let k = 0; k < 3; k += 1) {
        const value = m[k] * x + m[k + 4] * y + m[k + 8] * z + m[k + 12];
        low[k] = Math.min(low[k], value);
        high[k] = Math.max(high[k], value);
      }
    }
  }
  return { middle: low.map((value, k) => (value + high[k]) / 2), radius: Math.hypot(...low.map((value, k) => high[k] - value)) / 2 || 1 };
}

async function main() {
  if (!gl) { say("This browser does not show 3D."); return; }
  const file = unpack(GLB);
  if ((file.json.extensionsRequired || []).length) { say(`Save it to look at it: it needs ${file.json.extensionsRequired.join(", ")}.`); return; }
  const program = compile();
  const parts = [];
  for (const mesh of meshes(file.json)) parts.push(await prepare(file, program, mesh));
  const { middle, radius } = bounds(parts);
  const camera = { turn: -0.6, tilt: 0.3, far: 2.6, held: false };
  const uniform = (name) => gl.getUniformLocation(program, name);

  canvas.addEventListener("pointerdown", (event) => { camera.held = true; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { camera.held = false; });
  canvas.addEventListener("pointermove", (event) => {
    if (!camera.held) return;
    camera.turn += event.movementX * 0.01;
    camera.tilt = Math.max(-1.5, Math.min(1.5, camera.tilt + event.movementY * 0.01));
    requestAnimationFrame(draw);
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    camera.far = Math.max(1.1, Math.min(10, camera.far * Math.exp(event.deltaY * 0.001)));
    requestAnimationFrame(draw);
  }, { passive: false });
  new ResizeObserver(() => requestAnimationFrame(draw)).observe(canvas);

  function draw() {
    canvas.width = canvas.clientWidth * devicePixelRatio;
    canvas.height = canvas.clientHeight * devicePixelRatio;
    gl.viewport(0, 0, canvas.width, canvas.height);
    gl.clearColor(0.957, 0.957, 0.949, 1);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    const [s, c, t, u] = [Math.sin(camera.turn), Math.cos(camera.turn), Math.sin(camera.tilt), Math.cos(camera.tilt)];
    const size = 1 / radius;
    const around = new Float32Array([c * size, s * t * size, -s * u * size, 0, 0, u * size, t * size, 0, s * size, -c * t * size, c * u * size, 0, 0, 0, -camera.far, 1]);
    const centre = new Float32Array([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, -middle[0], -middle[1], -middle[2], 1]);
    const zoom = 1.8;
    const lens = new Float32Array([zoom * canvas.height / canvas.width, 0, 0, 0, 0, zoom, 0, 0, 0, 0, -1.005, -1, 0, 0, -0.1, 0]);
    gl.uniformMatrix4fv(uniform("view"), false, multiply(around, centre));
    gl.uniformMatrix4fv(uniform("lens"), false, lens);
    for (const part of parts) {
      gl.bindVertexArray(part.shape);
      gl.bindTexture(gl.TEXTURE_2D, part.skin);
      gl.uniformMatrix4fv(uniform("world"), false, part.matrix);
      gl.uniform4fv(uniform("color"), part.color);
      gl.uniform1i(uniform("skinned"), part.skin ? 1 : 0);
      gl.drawElements(gl.TRIANGLES, part.count, gl.UNSIGNED_INT, 0);
    }
  }
  draw();
}

main().catch((error) => say(`This model cannot be shown here: ${error.message}.`));
