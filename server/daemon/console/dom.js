// SPDX-License-Identifier: MIT
// The one way to make nodes. Texts become text nodes, never HTML, whoever wrote them.

export function element(tag, attributes = {}, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

export function drawing(tag, attributes = {}, ...children) {
    return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

// "onclick" is a listener. True is an attribute without a value, and false is none, except those of
// ARIA, which have them as words. Null and undefined are none.
function fill(made, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) {
            made.addEventListener(name.slice(2), value);
        } else if (
            value !== null &&
            value !== undefined &&
            (value !== false || name.startsWith("aria-"))
        ) {
            made.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
        }
    }
    made.append(
        ...children.flat(Infinity).filter((child) => child !== null && child !== undefined),
    );
    return made;
}

// ---- icons --------------------------------------------------------------------------------------

const ICONS = {
    // strokes in a square of 24
    add: "M12 5v14M5 12h14",
    check: "M5 12.5l4.5 4.5L19 7.5",
    copy: "M9 9h10v11H9zM15 9V4H5v11h4",
    edit: "M4 20h4L19 9l-4-4L4 16z",
    file: "M6 3h8l4 4v14H6zM14 3v4h4",
    menu: "M4 7h16M4 12h16M4 17h16",
    microphone: "M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5 11a7 7 0 0 0 14 0M12 18v3",
    play: "M8 5l11 7-11 7z",
    remove: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
    retry: "M19 12a7 7 0 1 1-2-5l2 2M19 4v5h-5",
    send: "M12 20V5M6 11l6-6 6 6",
    settings: "M4 7h9M17 7h3M15 5v4M4 17h3M11 17h9M9 15v4M4 12h16",
    stop: "M7 7h10v10H7z",
};

export function icon(name) {
    return drawing(
        "svg",
        {class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true"},
        drawing("path", {d: ICONS[name]}),
    );
}

// A button with an icon; |title| is its name where it shows no |text|.
export function iconButton(name, title, onclick, text = null, attributes = {}) {
    return element(
        "button",
        {
            type: "button",
            class: text ? "quiet" : "quiet bare",
            title,
            "aria-label": text ? null : title,
            onclick,
            ...attributes,
        },
        icon(name),
        text,
    );
}

// A button that copies what text() gives.
export function copyButton(text, title = "Copy") {
    const button = iconButton(
        "copy",
        title,
        async () => {
            const done = await navigator.clipboard?.writeText(text()).then(
                () => true,
                () => false,
            );
            button.replaceChildren(
                icon(done ? "check" : "copy"),
                done ? "Copied" : "Not permitted here",
            );
            setTimeout(() => button.replaceChildren(icon("copy"), title), 1500);
        },
        title,
    );
    return button;
}

// ---- pictures -----------------------------------------------------------------------------------

const TINY = 160; // pixels of a side; of smaller pictures one sees the pixels

// A canvas for a picture, whose |name| is for readers.
export function canvasOf(width, height, name) {
    return element("canvas", {
        class: width < TINY ? "shown tiny" : "shown",
        width,
        height,
        role: "img",
        "aria-label": name,
    });
}

export function copyOf(canvas, name = "the picture that was sent") {
    const copy = canvasOf(canvas.width, canvas.height, name);
    copy.getContext("2d").drawImage(canvas, 0, 0);
    return copy;
}

// ---- parts of pages -----------------------------------------------------------------------------

export function showError(error) {
    return element("p", {class: "error", role: "alert"}, error.message);
}

// A field below its name.
export function field(name, control, hint = null) {
    return element(
        "label",
        {class: "field"},
        element("span", {}, name),
        control,
        hint ? element("small", {}, hint) : null,
    );
}

// A choice of few, one of which is pressed: {key: name}.
export function choice(label, options, chosen, onchoose) {
    const buttons = Object.entries(options).map(([key, name]) =>
        element(
            "button",
            {
                type: "button",
                "aria-pressed": key === chosen,
                onclick: () => {
                    buttons.forEach((button) =>
                        button.setAttribute("aria-pressed", button.dataset.key === key),
                    );
                    onchoose(key);
                },
                "data-key": key,
            },
            name,
        ),
    );
    return element("div", {class: "choice", role: "group", "aria-label": label}, buttons);
}

// Tabs as the ARIA practices have them: arrows move; the page of a tab is made when it is opened.
// |pages|: {key, title, make}, where make() gives nodes or a promise of them.
export function tabs(pages, first, onopen = () => {}) {
    const panel = element("div", {role: "tabpanel", id: "panel", tabindex: "-1"});
    const made = new Map();
    const open = (page) => {
        for (const button of buttons) {
            const isOpen = button.dataset.key === page.key;
            button.setAttribute("aria-selected", isOpen);
            button.tabIndex = isOpen ? 0 : -1;
        }
        panel.setAttribute("aria-labelledby", `tab-${page.key}`);
        if (!made.has(page)) {
            const place = element(
                "div",
                {class: `page-${page.key}`},
                element("p", {class: "soft"}, "Loading …"),
            );
            made.set(page, place);
            Promise.resolve()
                .then(page.make)
                .then(
                    (nodes) => place.replaceChildren(...nodes),
                    (error) => place.replaceChildren(showError(error)),
                );
        }
        panel.replaceChildren(made.get(page));
        onopen(page.key);
    };
    const move = (event, at) => {
        const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1}[event.key];
        if (to !== undefined) {
            event.preventDefault();
            const next = buttons[(to + buttons.length) % buttons.length];
            next.focus();
            next.click();
        }
    };
    const buttons = pages.map((page, at) =>
        element(
            "button",
            {
                type: "button",
                role: "tab",
                id: `tab-${page.key}`,
                "aria-controls": "panel",
                "data-key": page.key,
                onclick: () => open(page),
                onkeydown: (event) => move(event, at),
            },
            page.title,
        ),
    );
    open(pages.find((page) => page.key === first) || pages[0]);
    return [element("div", {class: "tabs", role: "tablist"}, buttons), panel];
}
