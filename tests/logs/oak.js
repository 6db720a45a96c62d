// A judge that needs no network. It is overloaded where it is asked about bees, and does not answer about sums.
module.exports = class {
  id() { return "oak"; }
  async callApi(prompt) {
    if (prompt.includes("bees")) return { error: "the judge is overloaded" };
    if (prompt.includes("2 + 3")) return { output: "I cannot answer this." };
    const pass = !prompt.includes("as far as");
    return { output: JSON.stringify({ pass, score: pass ? 1 : 0.2, reason: "as it seems" }) };
  }
};
