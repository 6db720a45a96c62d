// A judge that needs no network, and passes all.
module.exports = class {
  id() { return "yew"; }
  async callApi() {
    return { output: JSON.stringify({ pass: true, score: 1, reason: "fine" }) };
  }
};
