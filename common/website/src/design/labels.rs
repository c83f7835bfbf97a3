//! The few words of ours that a page's frame needs.

/// Words in one language.
pub struct Labels {
    pub skip: &'static str,
    pub menu: &'static str,
    pub name: &'static str,
    pub email: &'static str,
    pub message: &'static str,
    pub send: &'static str,
    pub not_found: &'static str,
    pub home: &'static str,
}

macro_rules! labels {
    ($($language:literal: $skip:literal, $menu:literal, $name:literal, $email:literal, $message:literal, $send:literal, $not_found:literal, $home:literal;)*) => {
        /// The words of a BCP 47 language; English where we have none.
        pub fn labels(language: &str) -> Labels {
            match language.split('-').next().unwrap_or_default() {
                $($language => Labels { skip: $skip, menu: $menu, name: $name, email: $email, message: $message, send: $send, not_found: $not_found, home: $home },)*
                _ => labels("en"),
            }
        }
    };
}

labels! {
    "en": "Skip to content", "Pages", "Name", "Email", "Message", "Send", "This page does not exist", "To the first page";
    "de": "Zum Inhalt", "Seiten", "Name", "E-Mail", "Nachricht", "Senden", "Diese Seite gibt es nicht", "Zur Startseite";
    "fr": "Aller au contenu", "Pages", "Nom", "E-mail", "Message", "Envoyer", "Cette page n’existe pas", "Vers l’accueil";
    "es": "Ir al contenido", "Páginas", "Nombre", "Correo electrónico", "Mensaje", "Enviar", "Esta página no existe", "Ir al inicio";
    "it": "Vai al contenuto", "Pagine", "Nome", "Email", "Messaggio", "Invia", "Questa pagina non esiste", "Alla prima pagina";
    "pt": "Ir para o conteúdo", "Páginas", "Nome", "E-mail", "Mensagem", "Enviar", "Esta página não existe", "Ir para o início";
    "nl": "Naar de inhoud", "Pagina’s", "Naam", "E-mail", "Bericht", "Versturen", "Deze pagina bestaat niet", "Naar de startpagina";
    "ar": "إلى المحتوى", "الصفحات", "الاسم", "البريد الإلكتروني", "الرسالة", "إرسال", "هذه الصفحة غير موجودة", "إلى الصفحة الأولى";
}
