// SPDX-License-Identifier: MIT
// Numbers as people read them.

export function bytesText(bytes) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = 0;
    while (bytes >= 1024 && unit < units.length - 1) {
        bytes /= 1024;
        unit++;
    }
    return `${bytes >= 100 || unit === 0 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

export function timeText(ns) {
    if (!(ns > 0)) {
        return "–";
    }
    return ns < 1e6
        ? `${(ns / 1e3).toFixed(0)} µs`
        : ns < 1e9
          ? `${(ns / 1e6).toFixed(ns < 1e7 ? 2 : 1)} ms`
          : `${(ns / 1e9).toFixed(2)} s`;
}

export function rateText(rate) {
    return rate === 0 ? "0" : rate.toFixed(rate < 10 ? 1 : 0);
}

export function countText(count) {
    return count.toLocaleString("en");
}

// A number in few characters; what is no number keeps its name.
export function numberText(value) {
    const number = Number(value);
    return typeof value === "boolean" || (Number.isNaN(number) && typeof value !== "number")
        ? String(value)
        : Number.isInteger(number) && Math.abs(number) < 1e7
          ? String(number)
          : Number.isFinite(number)
            ? String(Number(number.toPrecision(4)))
            : String(number);
}

export function shapeText(tensor) {
    const most = (i) => (tensor.max_shape ? `≤${tensor.max_shape[i]}` : "?");
    const size = (dim, i) => (dim >= 0 ? dim : most(i));
    return `${tensor.datatype}[${(tensor.shape || []).map(size).join(",")}]`;
}
