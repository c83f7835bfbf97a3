//! Names of colours: those of CSS, common ones of two words, and the plainest in a few languages. Spaces are left out.

/// Sorted by name.
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("aliceblue", "#f0f8ff"), ("amarillo", "#f0c419"), ("amber", "#e39a00"), ("anthracite", "#33383d"),
    ("antiquewhite", "#faebd7"), ("apricot", "#f4b183"), ("aqua", "#00ffff"), ("aquamarine", "#7fffd4"),
    ("aubergine", "#4b1f3d"), ("azul", "#1f5fa8"), ("azure", "#f0ffff"), ("babyblue", "#a9cfea"),
    ("beige", "#f5f5dc"), ("bianco", "#ffffff"), ("bisque", "#ffe4c4"), ("black", "#000000"), ("blanc", "#ffffff"),
    ("blanchedalmond", "#ffebcd"), ("blanco", "#ffffff"), ("blau", "#1f5fa8"), ("bleu", "#1f5fa8"),
    ("blue", "#0000ff"), ("blueviolet", "#8a2be2"), ("blush", "#eec5c4"), ("blushpink", "#eec5c4"),
    ("bordeaux", "#6d1a2d"), ("bottlegreen", "#0b4a3a"), ("braun", "#7a4a2a"), ("brick", "#a3392b"),
    ("brickred", "#a3392b"), ("britishracinggreen", "#0f4a33"), ("bronze", "#a0672d"), ("brown", "#a52a2a"),
    ("burgundy", "#7b1e32"), ("burlywood", "#deb887"), ("burntorange", "#bf5700"), ("cadetblue", "#5f9ea0"),
    ("caramel", "#b7783f"), ("champagne", "#f1e2c8"), ("charcoal", "#36454f"), ("chartreuse", "#7fff00"),
    ("cherryred", "#b5122b"), ("chocolate", "#d2691e"), ("clay", "#b0714f"), ("cobalt", "#0d47a1"),
    ("cobaltblue", "#0d47a1"), ("copper", "#b2693a"), ("coral", "#ff7f50"), ("cornflowerblue", "#6495ed"),
    ("cornsilk", "#fff8dc"), ("cream", "#fbf3dd"), ("crimson", "#dc143c"), ("cyan", "#00ffff"),
    ("darkblue", "#00008b"), ("darkcyan", "#008b8b"), ("darkgoldenrod", "#b8860b"), ("darkgray", "#a9a9a9"),
    ("darkgreen", "#006400"), ("darkgrey", "#a9a9a9"), ("darkkhaki", "#bdb76b"), ("darkmagenta", "#8b008b"),
    ("darkolivegreen", "#556b2f"), ("darkorange", "#ff8c00"), ("darkorchid", "#9932cc"), ("darkred", "#8b0000"),
    ("darksalmon", "#e9967a"), ("darkseagreen", "#8fbc8f"), ("darkslateblue", "#483d8b"),
    ("darkslategray", "#2f4f4f"), ("darkslategrey", "#2f4f4f"), ("darkturquoise", "#00ced1"),
    ("darkviolet", "#9400d3"), ("deeppink", "#ff1493"), ("deepskyblue", "#00bfff"), ("denim", "#3b5f8a"),
    ("denimblue", "#3b5f8a"), ("dimgray", "#696969"), ("dimgrey", "#696969"), ("dodgerblue", "#1e90ff"),
    ("duckeggblue", "#bcd8d3"), ("dunkelblau", "#142c57"), ("dunkelgrün", "#12492f"), ("dustypink", "#cf9da0"),
    ("dustyrose", "#c48793"), ("eggplant", "#4b1f3d"), ("eggshell", "#f3ead7"), ("electricblue", "#0a6cff"),
    ("emerald", "#0f8a5f"), ("emeraldgreen", "#0f8a5f"), ("espresso", "#3f2a20"), ("firebrick", "#b22222"),
    ("floralwhite", "#fffaf0"), ("forestgreen", "#228b22"), ("fuchsia", "#ff00ff"), ("gainsboro", "#dcdcdc"),
    ("gelb", "#f0c419"), ("ghostwhite", "#f8f8ff"), ("giallo", "#f0c419"), ("gold", "#ffd700"),
    ("goldenrod", "#daa520"), ("graphite", "#3d4043"), ("grau", "#808080"), ("gray", "#808080"), ("green", "#008000"),
    ("greenyellow", "#adff2f"), ("grey", "#808080"), ("gris", "#808080"), ("grün", "#2b7a3d"),
    ("hellblau", "#a9cfea"), ("honeydew", "#f0fff0"), ("hotpink", "#ff69b4"), ("indianred", "#cd5c5c"),
    ("indigo", "#4b0082"), ("inkblue", "#1d2c4c"), ("ivory", "#fffff0"), ("jade", "#008f6a"), ("jaune", "#f0c419"),
    ("khaki", "#f0e68c"), ("lavender", "#e6e6fa"), ("lavenderblush", "#fff0f5"), ("lawngreen", "#7cfc00"),
    ("lemon", "#f5e050"), ("lemonchiffon", "#fffacd"), ("lemonyellow", "#f5e050"), ("lightblue", "#add8e6"),
    ("lightcoral", "#f08080"), ("lightcyan", "#e0ffff"), ("lightgoldenrodyellow", "#fafad2"),
    ("lightgray", "#d3d3d3"), ("lightgreen", "#90ee90"), ("lightgrey", "#d3d3d3"), ("lightpink", "#ffb6c1"),
    ("lightsalmon", "#ffa07a"), ("lightseagreen", "#20b2aa"), ("lightskyblue", "#87cefa"),
    ("lightslategray", "#778899"), ("lightslategrey", "#778899"), ("lightsteelblue", "#b0c4de"),
    ("lightyellow", "#ffffe0"), ("lilac", "#b99bc9"), ("lime", "#00ff00"), ("limegreen", "#32cd32"),
    ("linen", "#faf0e6"), ("magenta", "#ff00ff"), ("maroon", "#800000"), ("mauve", "#a57b93"),
    ("mediumaquamarine", "#66cdaa"), ("mediumblue", "#0000cd"), ("mediumorchid", "#ba55d3"),
    ("mediumpurple", "#9370db"), ("mediumseagreen", "#3cb371"), ("mediumslateblue", "#7b68ee"),
    ("mediumspringgreen", "#00fa9a"), ("mediumturquoise", "#48d1cc"), ("mediumvioletred", "#c71585"),
    ("midnightblue", "#191970"), ("mint", "#a8dcc1"), ("mintcream", "#f5fffa"), ("mintgreen", "#a8dcc1"),
    ("mistyrose", "#ffe4e1"), ("moccasin", "#ffe4b5"), ("moss", "#6d7a3a"), ("mossgreen", "#6d7a3a"),
    ("mustard", "#d4a017"), ("mustardyellow", "#d4a017"), ("navajowhite", "#ffdead"), ("navy", "#000080"),
    ("navyblue", "#1b2a52"), ("negro", "#000000"), ("nero", "#000000"), ("noir", "#000000"), ("ocher", "#c58a24"),
    ("ochre", "#c58a24"), ("offwhite", "#faf8f3"), ("oldlace", "#fdf5e6"), ("olive", "#808000"),
    ("olivedrab", "#6b8e23"), ("olivegreen", "#6b7a2f"), ("orange", "#ffa500"), ("orangered", "#ff4500"),
    ("orchid", "#da70d6"), ("oxblood", "#5d1220"), ("palegoldenrod", "#eee8aa"), ("palegreen", "#98fb98"),
    ("paleturquoise", "#afeeee"), ("palevioletred", "#db7093"), ("papayawhip", "#ffefd5"), ("pastelblue", "#b5d3ea"),
    ("pastelgreen", "#bfe0bd"), ("pastelpink", "#f4c6cf"), ("pastelyellow", "#f8edb0"), ("peach", "#f8b995"),
    ("peachpuff", "#ffdab9"), ("peru", "#cd853f"), ("petrol", "#0b5d6b"), ("pinegreen", "#1f5a45"),
    ("pink", "#ffc0cb"), ("plum", "#dda0dd"), ("powderblue", "#b0e0e6"), ("powderpink", "#f1d0d0"),
    ("purple", "#800080"), ("racinggreen", "#0f4a33"), ("rebeccapurple", "#663399"), ("red", "#ff0000"),
    ("rojo", "#c4231f"), ("rosegold", "#b76e79"), ("rosso", "#c4231f"), ("rosybrown", "#bc8f8f"), ("rot", "#c4231f"),
    ("rouge", "#c4231f"), ("royalblue", "#4169e1"), ("ruby", "#9b1236"), ("rubyred", "#9b1236"), ("rust", "#b0431e"),
    ("rustred", "#a93b1c"), ("saddlebrown", "#8b4513"), ("sage", "#8a9a7b"), ("sagegreen", "#8a9a7b"),
    ("salmon", "#fa8072"), ("sand", "#dcc9a3"), ("sandybrown", "#f4a460"), ("sapphire", "#0f4aa3"),
    ("scarlet", "#c8201c"), ("schwarz", "#000000"), ("seafoam", "#a6dcc8"), ("seagreen", "#2e8b57"),
    ("seashell", "#fff5ee"), ("senfgelb", "#d4a017"), ("sienna", "#a0522d"), ("silver", "#c0c0c0"),
    ("skyblue", "#87ceeb"), ("slate", "#5a6772"), ("slateblue", "#6a5acd"), ("slategray", "#708090"),
    ("slategrey", "#708090"), ("snow", "#fffafa"), ("springgreen", "#00ff7f"), ("steelblue", "#4682b4"),
    ("stone", "#b5ada0"), ("sunflower", "#f2b705"), ("sunfloweryellow", "#f2b705"), ("tan", "#d2b48c"),
    ("taupe", "#8b7d70"), ("teal", "#008080"), ("tealgreen", "#0d7a72"), ("terracotta", "#c5603c"),
    ("thistle", "#d8bfd8"), ("tomato", "#ff6347"), ("turquoise", "#40e0d0"), ("türkis", "#1fa5a0"),
    ("verde", "#2b7a3d"), ("vermilion", "#d9381e"), ("vermillion", "#d9381e"), ("vert", "#2b7a3d"),
    ("violet", "#ee82ee"), ("weinrot", "#701c33"), ("weiß", "#ffffff"), ("wheat", "#f5deb3"), ("white", "#ffffff"),
    ("whitesmoke", "#f5f5f5"), ("winered", "#701c33"), ("yellow", "#ffff00"), ("yellowgreen", "#9acd32"),
];

/// The colour of a name in lower case without spaces.
pub fn named(name: &str) -> Option<&'static str> {
    NAMES.binary_search_by_key(&name, |(name, _)| name).ok().map(|at| NAMES[at].1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found() {
        assert!(NAMES.iter().all(|(name, color)| named(name) == Some(color)));
    }
}
