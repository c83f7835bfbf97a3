// Shows /openapi.json. Nothing is asked of any other host: no validator, no fonts.
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: -1,
  defaultModelExpandDepth: 3,
  filter: true,
  validatorUrl: null,
});
