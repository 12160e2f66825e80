type Schemas = Readonly<Record<string, object>>;

// What clients send, from v2.json. Written by `npm run schema`; do not edit.

const $defs = {
 "InitializeRequest": {
  "type": "object",
  "properties": {
   "protocolVersion": {
    "allOf": [
     {
      "$ref": "#/$defs/ProtocolVersion"
     }
    ]
   },
   "info": {
    "allOf": [
     {
      "$ref": "#/$defs/Implementation"
     }
    ]
   },
   "capabilities": {
    "allOf": [
     {
      "$ref": "#/$defs/ClientCapabilities"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "protocolVersion",
   "info"
  ]
 },
 "ProtocolVersion": {
  "type": "integer",
  "minimum": 0,
  "maximum": 65535
 },
 "Implementation": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "title": {
    "type": [
     "string",
     "null"
    ]
   },
   "version": {
    "type": "string"
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "version"
  ]
 },
 "ClientCapabilities": {
  "type": "object",
  "properties": {
   "auth": {
    "anyOf": [
     {
      "$ref": "#/$defs/ClientAuthCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "elicitation": {
    "anyOf": [
     {
      "$ref": "#/$defs/ElicitationCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "ClientAuthCapabilities": {
  "type": "object",
  "properties": {
   "terminal": {
    "anyOf": [
     {
      "$ref": "#/$defs/TerminalAuthCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "TerminalAuthCapabilities": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "ElicitationCapabilities": {
  "type": "object",
  "properties": {
   "form": {
    "anyOf": [
     {
      "$ref": "#/$defs/ElicitationFormCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "url": {
    "anyOf": [
     {
      "$ref": "#/$defs/ElicitationUrlCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "ElicitationFormCapabilities": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "ElicitationUrlCapabilities": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "LoginAuthRequest": {
  "type": "object",
  "properties": {
   "methodId": {
    "allOf": [
     {
      "$ref": "#/$defs/AuthMethodId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "methodId"
  ]
 },
 "AuthMethodId": {
  "type": "string"
 },
 "LogoutAuthRequest": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "NewSessionRequest": {
  "type": "object",
  "properties": {
   "cwd": {
    "allOf": [
     {
      "$ref": "#/$defs/AbsolutePath"
     }
    ]
   },
   "additionalDirectories": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/AbsolutePath"
    }
   },
   "mcpServers": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/McpServer"
    }
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "cwd"
  ]
 },
 "AbsolutePath": {
  "type": "string"
 },
 "McpServer": {
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "http"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/McpServerHttp"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "stdio"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/McpServerStdio"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string"
     }
    },
    "required": [
     "type"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "http"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "stdio"
        }
       },
       "required": [
        "type"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ]
 },
 "McpServerHttp": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "url": {
    "type": "string"
   },
   "headers": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/HttpHeader"
    }
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "url"
  ]
 },
 "HttpHeader": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "value": {
    "type": "string"
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "value"
  ]
 },
 "McpServerStdio": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "command": {
    "allOf": [
     {
      "$ref": "#/$defs/AbsolutePath"
     }
    ]
   },
   "args": {
    "type": "array",
    "items": {
     "type": "string"
    }
   },
   "env": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/EnvVariable"
    }
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "command"
  ]
 },
 "EnvVariable": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "value": {
    "type": "string"
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "value"
  ]
 },
 "ListSessionsRequest": {
  "type": "object",
  "properties": {
   "cwd": {
    "anyOf": [
     {
      "$ref": "#/$defs/AbsolutePath"
     },
     {
      "type": "null"
     }
    ]
   },
   "cursor": {
    "anyOf": [
     {
      "$ref": "#/$defs/SessionListCursor"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "SessionListCursor": {
  "type": "string"
 },
 "DeleteSessionRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId"
  ]
 },
 "SessionId": {
  "type": "string"
 },
 "ResumeSessionRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "cwd": {
    "allOf": [
     {
      "$ref": "#/$defs/AbsolutePath"
     }
    ]
   },
   "additionalDirectories": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/AbsolutePath"
    }
   },
   "mcpServers": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/McpServer"
    }
   },
   "replayFrom": {
    "anyOf": [
     {
      "$ref": "#/$defs/ReplayFrom"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId",
   "cwd"
  ]
 },
 "ReplayFrom": {
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "start"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/ReplayFromStart"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string"
     }
    },
    "required": [
     "type"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "start"
        }
       },
       "required": [
        "type"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ]
 },
 "ReplayFromStart": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "CloseSessionRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId"
  ]
 },
 "CancelToolCallRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "toolCallId": {
    "allOf": [
     {
      "$ref": "#/$defs/ToolCallId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId",
   "toolCallId"
  ]
 },
 "ToolCallId": {
  "type": "string"
 },
 "CancelTerminalRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "terminalId": {
    "allOf": [
     {
      "$ref": "#/$defs/TerminalId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId",
   "terminalId"
  ]
 },
 "TerminalId": {
  "type": "string"
 },
 "SetSessionConfigOptionRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "configId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionConfigId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "id"
     },
     "value": {
      "allOf": [
       {
        "$ref": "#/$defs/SessionConfigValueId"
       }
      ]
     }
    },
    "required": [
     "type",
     "value"
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "boolean"
     },
     "value": {
      "type": "boolean"
     }
    },
    "required": [
     "type",
     "value"
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string"
     },
     "value": {}
    },
    "required": [
     "type",
     "value"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "id"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "boolean"
        }
       },
       "required": [
        "type"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ],
  "required": [
   "sessionId",
   "configId"
  ]
 },
 "SessionConfigId": {
  "type": "string"
 },
 "SessionConfigValueId": {
  "type": "string"
 },
 "PromptRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "prompt": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/ContentBlock"
    },
    "minItems": 1
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId",
   "prompt"
  ]
 },
 "ContentBlock": {
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "text"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/TextContent"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "image"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/ImageContent"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "audio"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/AudioContent"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "resource_link"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/ResourceLink"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string",
      "const": "resource"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/EmbeddedResource"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "type": {
      "type": "string"
     }
    },
    "required": [
     "type"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "text"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "image"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "audio"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "resource_link"
        }
       },
       "required": [
        "type"
       ]
      },
      {
       "type": "object",
       "properties": {
        "type": {
         "type": "string",
         "const": "resource"
        }
       },
       "required": [
        "type"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ]
 },
 "TextContent": {
  "type": "object",
  "properties": {
   "text": {
    "type": "string"
   },
   "annotations": {
    "anyOf": [
     {
      "$ref": "#/$defs/Annotations"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "text"
  ]
 },
 "Annotations": {
  "type": "object",
  "properties": {
   "audience": {
    "type": [
     "array",
     "null"
    ],
    "items": {
     "$ref": "#/$defs/Role"
    }
   },
   "lastModified": {
    "type": [
     "string",
     "null"
    ]
   },
   "priority": {
    "type": [
     "number",
     "null"
    ],
    "minimum": 0,
    "maximum": 1
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "Role": {
  "anyOf": [
   {
    "type": "string",
    "const": "assistant"
   },
   {
    "type": "string",
    "const": "user"
   },
   {
    "type": "string"
   }
  ]
 },
 "ImageContent": {
  "type": "object",
  "properties": {
   "data": {
    "type": "string",
    "contentEncoding": "base64"
   },
   "mimeType": {
    "allOf": [
     {
      "$ref": "#/$defs/MediaType"
     }
    ]
   },
   "uri": {
    "type": [
     "string",
     "null"
    ]
   },
   "annotations": {
    "anyOf": [
     {
      "$ref": "#/$defs/Annotations"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "data",
   "mimeType"
  ]
 },
 "MediaType": {
  "type": "string"
 },
 "AudioContent": {
  "type": "object",
  "properties": {
   "data": {
    "type": "string",
    "contentEncoding": "base64"
   },
   "mimeType": {
    "allOf": [
     {
      "$ref": "#/$defs/MediaType"
     }
    ]
   },
   "annotations": {
    "anyOf": [
     {
      "$ref": "#/$defs/Annotations"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "data",
   "mimeType"
  ]
 },
 "ResourceLink": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "uri": {
    "type": "string"
   },
   "title": {
    "type": [
     "string",
     "null"
    ]
   },
   "description": {
    "type": [
     "string",
     "null"
    ]
   },
   "icons": {
    "type": [
     "array",
     "null"
    ],
    "items": {
     "$ref": "#/$defs/Icon"
    }
   },
   "mimeType": {
    "anyOf": [
     {
      "$ref": "#/$defs/MediaType"
     },
     {
      "type": "null"
     }
    ]
   },
   "size": {
    "type": [
     "integer",
     "null"
    ],
    "minimum": 0
   },
   "annotations": {
    "anyOf": [
     {
      "$ref": "#/$defs/Annotations"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "name",
   "uri"
  ]
 },
 "Icon": {
  "type": "object",
  "properties": {
   "src": {
    "type": "string"
   },
   "mimeType": {
    "anyOf": [
     {
      "$ref": "#/$defs/MediaType"
     },
     {
      "type": "null"
     }
    ]
   },
   "sizes": {
    "type": [
     "array",
     "null"
    ],
    "items": {
     "type": "string"
    }
   },
   "theme": {
    "anyOf": [
     {
      "$ref": "#/$defs/IconTheme"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "src"
  ]
 },
 "IconTheme": {
  "anyOf": [
   {
    "type": "string",
    "const": "light"
   },
   {
    "type": "string",
    "const": "dark"
   },
   {
    "type": "string"
   }
  ]
 },
 "EmbeddedResource": {
  "type": "object",
  "properties": {
   "resource": {
    "allOf": [
     {
      "$ref": "#/$defs/EmbeddedResourceResource"
     }
    ]
   },
   "annotations": {
    "anyOf": [
     {
      "$ref": "#/$defs/Annotations"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "resource"
  ]
 },
 "EmbeddedResourceResource": {
  "anyOf": [
   {
    "allOf": [
     {
      "$ref": "#/$defs/TextResourceContents"
     }
    ]
   },
   {
    "allOf": [
     {
      "$ref": "#/$defs/BlobResourceContents"
     }
    ]
   }
  ]
 },
 "TextResourceContents": {
  "type": "object",
  "properties": {
   "text": {
    "type": "string"
   },
   "uri": {
    "type": "string"
   },
   "mimeType": {
    "anyOf": [
     {
      "$ref": "#/$defs/MediaType"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "text",
   "uri"
  ]
 },
 "BlobResourceContents": {
  "type": "object",
  "properties": {
   "blob": {
    "type": "string",
    "contentEncoding": "base64"
   },
   "uri": {
    "type": "string"
   },
   "mimeType": {
    "anyOf": [
     {
      "$ref": "#/$defs/MediaType"
     },
     {
      "type": "null"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "blob",
   "uri"
  ]
 },
 "RequestPermissionResponse": {
  "type": "object",
  "properties": {
   "outcome": {
    "allOf": [
     {
      "$ref": "#/$defs/RequestPermissionOutcome"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "outcome"
  ]
 },
 "RequestPermissionOutcome": {
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "outcome": {
      "type": "string",
      "const": "cancelled"
     }
    },
    "required": [
     "outcome"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/CancelledPermissionOutcome"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "outcome": {
      "type": "string",
      "const": "selected"
     }
    },
    "required": [
     "outcome"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/SelectedPermissionOutcome"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "outcome": {
      "type": "string"
     }
    },
    "required": [
     "outcome"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "outcome": {
         "type": "string",
         "const": "cancelled"
        }
       },
       "required": [
        "outcome"
       ]
      },
      {
       "type": "object",
       "properties": {
        "outcome": {
         "type": "string",
         "const": "selected"
        }
       },
       "required": [
        "outcome"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ]
 },
 "CancelledPermissionOutcome": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  }
 },
 "SelectedPermissionOutcome": {
  "type": "object",
  "properties": {
   "optionId": {
    "allOf": [
     {
      "$ref": "#/$defs/PermissionOptionId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "optionId"
  ]
 },
 "PermissionOptionId": {
  "type": "string"
 },
 "CreateElicitationResponse": {
  "type": "object",
  "properties": {
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "anyOf": [
   {
    "type": "object",
    "properties": {
     "action": {
      "type": "string",
      "const": "accept"
     }
    },
    "required": [
     "action"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/ElicitationAcceptAction"
     }
    ]
   },
   {
    "type": "object",
    "properties": {
     "action": {
      "type": "string",
      "const": "decline"
     }
    },
    "required": [
     "action"
    ]
   },
   {
    "type": "object",
    "properties": {
     "action": {
      "type": "string",
      "const": "cancel"
     }
    },
    "required": [
     "action"
    ]
   },
   {
    "type": "object",
    "properties": {
     "action": {
      "type": "string"
     }
    },
    "required": [
     "action"
    ],
    "not": {
     "anyOf": [
      {
       "type": "object",
       "properties": {
        "action": {
         "type": "string",
         "const": "accept"
        }
       },
       "required": [
        "action"
       ]
      },
      {
       "type": "object",
       "properties": {
        "action": {
         "type": "string",
         "const": "decline"
        }
       },
       "required": [
        "action"
       ]
      },
      {
       "type": "object",
       "properties": {
        "action": {
         "type": "string",
         "const": "cancel"
        }
       },
       "required": [
        "action"
       ]
      }
     ]
    },
    "additionalProperties": true
   }
  ]
 },
 "ElicitationAcceptAction": {
  "type": "object",
  "properties": {
   "content": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": {
     "$ref": "#/$defs/ElicitationContentValue"
    }
   }
  }
 },
 "ElicitationContentValue": {
  "anyOf": [
   {
    "type": "string"
   },
   {
    "type": "integer"
   },
   {
    "type": "number"
   },
   {
    "type": "boolean"
   },
   {
    "type": "array",
    "items": {
     "type": "string"
    }
   },
   {}
  ]
 },
 "CancelSessionNotification": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "sessionId"
  ]
 },
 "CancelRequestNotification": {
  "type": "object",
  "properties": {
   "requestId": {
    "allOf": [
     {
      "$ref": "#/$defs/RequestId"
     }
    ]
   },
   "_meta": {
    "type": [
     "object",
     "null"
    ],
    "additionalProperties": true
   }
  },
  "required": [
   "requestId"
  ]
 },
 "RequestId": {
  "anyOf": [
   {
    "type": "integer"
   },
   {
    "type": "string"
   }
  ]
 }
};

/** The schemas of a client's requests and notifications, by their methods. */
export const requestSchemas: Schemas = {
  "initialize": { $ref: "#/$defs/InitializeRequest", $defs },
  "auth/login": { $ref: "#/$defs/LoginAuthRequest", $defs },
  "auth/logout": { $ref: "#/$defs/LogoutAuthRequest", $defs },
  "session/new": { $ref: "#/$defs/NewSessionRequest", $defs },
  "session/list": { $ref: "#/$defs/ListSessionsRequest", $defs },
  "session/delete": { $ref: "#/$defs/DeleteSessionRequest", $defs },
  "session/resume": { $ref: "#/$defs/ResumeSessionRequest", $defs },
  "session/close": { $ref: "#/$defs/CloseSessionRequest", $defs },
  "tool_call/cancel": { $ref: "#/$defs/CancelToolCallRequest", $defs },
  "terminal/cancel": { $ref: "#/$defs/CancelTerminalRequest", $defs },
  "session/set_config_option": { $ref: "#/$defs/SetSessionConfigOptionRequest", $defs },
  "session/prompt": { $ref: "#/$defs/PromptRequest", $defs },
  "session/cancel": { $ref: "#/$defs/CancelSessionNotification", $defs },
  "$/cancel_request": { $ref: "#/$defs/CancelRequestNotification", $defs },
};

/** The schemas of a client's answers, by the methods of our requests. */
export const answerSchemas: Schemas = {
  "session/request_permission": { $ref: "#/$defs/RequestPermissionResponse", $defs },
  "elicitation/create": { $ref: "#/$defs/CreateElicitationResponse", $defs },
};
