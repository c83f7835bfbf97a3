// Shows /openapi.json. Nothing is asked of any other host: no validator, no fonts.
const ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: -1,
  defaultModelExpandDepth: 3,
  filter: true,
  validatorUrl: null,
  // The other names of the same calls, folded. They are the last tag of the description.
  onComplete: () => ui.layoutActions.show(['operations-tag', 'Aliases'], false),
});
