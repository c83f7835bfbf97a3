//! Pages in languages other than English, and in older character sets.

use encoding_rs::{EUC_KR, Encoding, GBK, ISO_8859_2, SHIFT_JIS, UTF_8, WINDOWS_1251, WINDOWS_1252};

use crate::{PageKind, SitePage, Truth};

struct Tongue {
    code: &'static str,
    charset: &'static Encoding,
    /// Where the character set is declared.
    said: Said,
    title: &'static str,
    paras: [&'static str; 3],
    menu: [&'static str; 4],
    notice: &'static str,
}

#[derive(Clone, Copy, PartialEq)]
enum Said {
    Header,
    Page,
    Nowhere,
}

const TONGUES: [Tongue; 14] = [
    Tongue {
        code: "de",
        charset: UTF_8,
        said: Said::Header,
        title: "Die Nachtfähre zur Sauerampferinsel",
        paras: [
            "Die Nachtfähre legt freitags und samstags um 23.15 Uhr am Alten Kai ab und braucht vierzig Minuten bis zur Insel.",
            "Größere Gruppen müssen sich vorher anmelden, denn auf der »Marigold« dürfen nur 180 Fahrgäste übersetzen.",
            "Bei schwerer Dünung kehrt das Schiff am Leuchtturm um, und die Fahrkarte gilt am nächsten Tag weiter.",
        ],
        menu: ["Startseite", "Fahrplan", "Über uns", "Kontakt"],
        notice: "Wir verwenden Cookies, um Ihnen den bestmöglichen Besuch zu bieten.",
    },
    Tongue {
        code: "de-at",
        charset: WINDOWS_1252,
        said: Said::Header,
        title: "Knödel mit Zwetschken",
        paras: [
            "Der Teig besteht aus mehligen Erdäpfeln, griffigem Mehl und einem Ei, und er muss rasch verarbeitet werden.",
            "Die Knödel ziehen zwölf Minuten in leicht wallendem Wasser, bis sie an die Oberfläche steigen.",
            "Zum Schluss wälzt man sie in Bröseln, die in Butter mit einer Prise Zimt geröstet wurden.",
        ],
        menu: ["Start", "Rezepte", "Küche", "Impressum"],
        notice: "Melden Sie sich für unseren Rundbrief an und verpassen Sie kein Rezept.",
    },
    Tongue {
        code: "fr",
        charset: UTF_8,
        said: Said::Page,
        title: "Le pont de Calder ferme onze semaines",
        paras: [
            "Le pont de Calder sera fermé à toute circulation à partir du 4 mars, pour une durée de onze semaines.",
            "Les inspecteurs ont découvert des fissures dans neuf des quatorze appuis d’acier sous la travée orientale.",
            "Un bac provisoire transportera les piétons et les cyclistes toutes les douze minutes, sauf par fort courant.",
        ],
        menu: ["Accueil", "Région", "Culture", "Météo"],
        notice: "Avec votre accord, nos partenaires et nous utilisons des cookies.",
    },
    Tongue {
        code: "fr-old",
        charset: WINDOWS_1252,
        said: Said::Page,
        title: "L’île du brouillard",
        paras: [
            "Sur l’île, douze filets de quarante mètres carrés récoltent l’eau du brouillard depuis déjà trois étés.",
            "Le rendement moyen est de mille cent cinquante litres par jour, assez pour deux cent trente habitants.",
            "Les chèvres étaient le plus grand danger, jusqu’à ce qu’une clôture fût posée.",
        ],
        menu: ["Accueil", "Récits", "Photos", "Livre d’or"],
        notice: "Page optimisée pour une résolution de 800 sur 600.",
    },
    Tongue {
        code: "es",
        charset: UTF_8,
        said: Said::Header,
        title: "Las abejas que cuentan hasta cinco",
        paras: [
            "Las abejas distinguieron hasta cinco marcas en el setenta y ocho por ciento de los ensayos del laboratorio.",
            "El equipo entrenó a doscientas catorce abejas durante dos veranos en un balcón sobre las cocheras del tranvía.",
            "Todavía se discute si los animales cuentan de verdad o si sólo reconocen patrones.",
        ],
        menu: ["Portada", "Ciencia", "Opinión", "Más leído"],
        notice: "Suscríbase a nuestro boletín y reciba cada mañana las noticias.",
    },
    Tongue {
        code: "it",
        charset: UTF_8,
        said: Said::Nowhere,
        title: "La biblioteca di vetro",
        paras: [
            "La biblioteca di vetro custodisce trecentodiecimila volumi su sei ponti aperti intorno a un cortile riscaldato.",
            "È aperta dalle sette del mattino fino a mezzanotte, e la domenica da mezzogiorno.",
            "I versi dei poeti incisi nel vetro impediscono anche agli uccelli di andarvi a sbattere.",
        ],
        menu: ["Prima pagina", "Città", "Cultura", "Lettere"],
        notice: "Questo sito utilizza cookie tecnici e di profilazione.",
    },
    Tongue {
        code: "pl",
        charset: ISO_8859_2,
        said: Said::Page,
        title: "Łazienki i rzeka",
        paras: [
            "Węgorze wróciły do górnego biegu rzeki po osiemdziesięciu latach, dzięki drabince przy starym jazie.",
            "Kamery policzyły trzy tysiące czterysta osiemdziesiąt młodych węgorzy w ciągu pierwszej wiosny.",
            "Drabinka to pochylnia ze szczotek, zwilżana przez małą pompę.",
        ],
        menu: ["Strona główna", "Przyroda", "Ludzie", "Kontakt"],
        notice: "Zapisz się do newslettera i bądź na bieżąco.",
    },
    Tongue {
        code: "ru",
        charset: WINDOWS_1251,
        said: Said::Header,
        title: "Ночной паром на остров",
        paras: [
            "Ночной паром отходит от Старой набережной по пятницам и субботам в 23:15 и идёт сорок минут.",
            "Переезд стоит девять крон, а велосипеды до полуночи перевозят бесплатно.",
            "При сильном волнении судно поворачивает назад у маяка.",
        ],
        menu: ["Главная", "Расписание", "О нас", "Контакты"],
        notice: "Подпишитесь на нашу рассылку, чтобы ничего не пропустить.",
    },
    Tongue {
        code: "uk",
        charset: WINDOWS_1251,
        said: Said::Page,
        title: "Торф розповідає",
        paras: [
            "Керн торфу має довжину сім метрів тридцять сантиметрів і сягає на дев’ять тисяч років назад.",
            "Вік шарів визначили за сорока однією радіовуглецевою датою та двома смугами попелу.",
            "Найсухіший період був близько чотирьох тисяч двохсот років тому.",
        ],
        menu: ["Головна", "Наука", "Природа", "Про нас"],
        notice: "Цей сайт використовує файли cookie для вашої зручності.",
    },
    Tongue {
        code: "ja",
        charset: SHIFT_JIS,
        said: Said::Page,
        title: "島への夜行フェリー",
        paras: [
            "夜行フェリーは金曜日と土曜日の二十三時十五分に旧埠頭を出発し、島まで四十分かかります。",
            "料金は九クローネで、自転車は真夜中まで無料で運ばれます。",
            "うねりが大きいときは、船は灯台のところで引き返します。",
        ],
        menu: ["ホーム", "時刻表", "会社案内", "お問い合わせ"],
        notice: "当サイトではクッキーを使用しています。詳しくはこちら。",
    },
    Tongue {
        code: "zh",
        charset: GBK,
        said: Said::Header,
        title: "玻璃图书馆开放",
        paras: [
            "玻璃图书馆在围绕庭院的六层开放平台上收藏了三十一万册图书，阅览座位不能预订。",
            "图书馆每天早上七点开放到午夜，星期日从中午开始开放。",
            "玻璃上刻着当地诗人的诗句，也能防止鸟类撞上玻璃。",
        ],
        menu: ["首页", "新闻", "文化", "联系我们"],
        notice: "订阅我们的电子报，每天早上收到最新消息。",
    },
    Tongue {
        code: "ko",
        charset: EUC_KR,
        said: Said::Header,
        title: "안개에서 얻는 물",
        paras: [
            "섬 서쪽 능선에 있는 열두 개의 그물은 하루 평균 천백오십 리터의 물을 모은다.",
            "그물은 삼각형 무늬로 짠 폴리프로필렌으로 만들어졌다.",
            "이 물은 이백삼십 명의 주민과 그들의 정원에 충분하다.",
        ],
        menu: ["홈", "소식", "사람들", "연락처"],
        notice: "뉴스레터를 구독하고 소식을 받아 보세요.",
    },
    Tongue {
        code: "ar",
        charset: UTF_8,
        said: Said::Header,
        title: "جسر كالدر يغلق أحد عشر أسبوعا",
        paras: [
            "يغلق جسر كالدر أمام جميع المركبات ابتداء من الرابع من مارس ولمدة أحد عشر أسبوعا.",
            "وجد المفتشون شقوقا دقيقة في تسعة من المحامل الفولاذية الأربعة عشر.",
            "تنقل عبارة مؤقتة المشاة وراكبي الدراجات كل اثنتي عشرة دقيقة.",
        ],
        menu: ["الرئيسية", "أخبار", "ثقافة", "اتصل بنا"],
        notice: "نستخدم ملفات تعريف الارتباط لتحسين تجربتك على موقعنا.",
    },
    Tongue {
        code: "el",
        charset: UTF_8,
        said: Said::Page,
        title: "Το ψωμί της σίκαλης",
        paras: [
            "Το ψωμί σίκαλης ψήνεται εβδομήντα λεπτά, στην αρχή στους διακόσιους πενήντα βαθμούς.",
            "Η ζύμη χρειάζεται εννιακόσια γραμμάρια αλεύρι ολικής άλεσης και επτακόσια είκοσι γραμμάρια νερό.",
            "Είναι έτοιμο όταν ακούγεται κούφιο στο χτύπημα.",
        ],
        menu: ["Αρχική", "Συνταγές", "Κουζίνα", "Επικοινωνία"],
        notice: "Χρησιμοποιούμε cookies για να σας προσφέρουμε την καλύτερη εμπειρία.",
    },
];

pub fn pages() -> Vec<SitePage> {
    TONGUES.iter().enumerate().map(|(index, tongue)| page(index, tongue)).collect()
}

fn page(index: usize, tongue: &Tongue) -> SitePage {
    let label = tongue.charset.name();
    let meta = if tongue.said == Said::Page {
        format!("<meta http-equiv=\"Content-Type\" content=\"text/html; charset={label}\">")
    } else {
        String::new()
    };
    let menu: String =
        tongue.menu.iter().map(|name| format!("<li><a href=\"/{}\">{name}</a></li>", name.len())).collect();
    let Tongue { code, title, paras, notice, .. } = tongue;
    let lang = code.split('-').next().unwrap_or(code);
    let direction = if *code == "ar" { " dir=\"rtl\"" } else { "" };
    let html = match index % 4 {
        0 => format!(
            "<!DOCTYPE html><html lang=\"{lang}\"{direction}><head>{meta}<title>{title}</title></head><body><header><nav><ul>{menu}</ul></nav></header><main><article><h1>{title}</h1><p>{}</p><p>{}</p><p>{}</p></article></main><div class=\"cookie-notice\" role=\"dialog\"><p>{notice}</p></div></body></html>",
            paras[0], paras[1], paras[2]
        ),
        1 => format!(
            "<html{direction} lang={lang}><head>{meta}<title>{title}</title></head><body bgcolor=white><table><tr><td width=150><ul>{menu}</ul></td><td><h1>{title}</h1>{}<br><br>{}<br><br>{}</td></tr><tr><td colspan=2><font size=1>{notice}</font></td></tr></table></body></html>",
            paras[0], paras[1], paras[2]
        ),
        2 => format!(
            "<!DOCTYPE html><html lang=\"{lang}\"{direction}><head>{meta}<title>{title}</title></head><body><div id=\"menu\"><ul>{menu}</ul></div><div id=\"content\"><h1>{title}</h1><div class=\"text\"><p>{}</p><p>{}</p><p>{}</p></div></div><div class=\"newsletter\">{notice}</div></body></html>",
            paras[0], paras[1], paras[2]
        ),
        _ => format!(
            "<!DOCTYPE html><html{direction}><head>{meta}<title>{title}</title></head><body><div class=\"site\"><div class=\"top\"><ul>{menu}</ul></div><div class=\"post\"><h1>{title}</h1><div>{}</div><div>{}</div><div>{}</div></div><footer><p>{notice}</p></footer></div></body></html>",
            paras[0], paras[1], paras[2]
        ),
    };
    let content_type =
        if tongue.said == Said::Header { format!("text/html; charset={label}") } else { "text/html".to_owned() };
    SitePage {
        host: "world.example".to_owned(),
        path: format!("/{code}/"),
        content_type,
        body: tongue.charset.encode(&html).0.into_owned(),
        headers: Vec::new(),
        kind: PageKind::Tongue,
        topic: None,
        truth: Truth {
            title: (*title).to_owned(),
            main_text: paras.map(str::to_owned).to_vec(),
            boilerplate: vec![(*notice).to_owned()],
            ..Truth::default()
        },
    }
}
