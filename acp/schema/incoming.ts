type Schemas = Readonly<Record<string, object>>;

// What clients send, from v1.json. Written by `npm run schema`; do not edit.

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
   "clientCapabilities": {
    "allOf": [
     {
      "$ref": "#/$defs/ClientCapabilities"
     }
    ]
   },
   "clientInfo": {
    "anyOf": [
     {
      "$ref": "#/$defs/Implementation"
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
   "protocolVersion"
  ]
 },
 "ProtocolVersion": {
  "type": "integer",
  "minimum": 0,
  "maximum": 65535
 },
 "ClientCapabilities": {
  "type": "object",
  "properties": {
   "fs": {
    "allOf": [
     {
      "$ref": "#/$defs/FileSystemCapabilities"
     }
    ]
   },
   "terminal": {
    "type": "boolean"
   },
   "session": {
    "anyOf": [
     {
      "$ref": "#/$defs/ClientSessionCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "auth": {
    "allOf": [
     {
      "$ref": "#/$defs/AuthCapabilities"
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
 "FileSystemCapabilities": {
  "type": "object",
  "properties": {
   "readTextFile": {
    "type": "boolean"
   },
   "writeTextFile": {
    "type": "boolean"
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
 "ClientSessionCapabilities": {
  "type": "object",
  "properties": {
   "compaction": {
    "anyOf": [
     {
      "$ref": "#/$defs/CompactionCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "configOptions": {
    "anyOf": [
     {
      "$ref": "#/$defs/SessionConfigOptionsCapabilities"
     },
     {
      "type": "null"
     }
    ]
   },
   "notices": {
    "anyOf": [
     {
      "$ref": "#/$defs/NoticeCapabilities"
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
 "CompactionCapabilities": {
  "type": "object"
 },
 "SessionConfigOptionsCapabilities": {
  "type": "object",
  "properties": {
   "boolean": {
    "anyOf": [
     {
      "$ref": "#/$defs/BooleanConfigOptionCapabilities"
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
 "BooleanConfigOptionCapabilities": {
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
 "NoticeCapabilities": {
  "type": "object"
 },
 "AuthCapabilities": {
  "type": "object",
  "properties": {
   "terminal": {
    "type": "boolean"
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
 "AuthenticateRequest": {
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
 "LogoutRequest": {
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
    "type": "string"
   },
   "additionalDirectories": {
    "type": "array",
    "items": {
     "type": "string"
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
      "const": "sse"
     }
    },
    "required": [
     "type"
    ],
    "allOf": [
     {
      "$ref": "#/$defs/McpServerSse"
     }
    ]
   },
   {
    "allOf": [
     {
      "$ref": "#/$defs/McpServerStdio"
     }
    ]
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
   "url",
   "headers"
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
 "McpServerSse": {
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
   "url",
   "headers"
  ]
 },
 "McpServerStdio": {
  "type": "object",
  "properties": {
   "name": {
    "type": "string"
   },
   "command": {
    "type": "string"
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
   "command",
   "args",
   "env"
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
 "LoadSessionRequest": {
  "type": "object",
  "properties": {
   "mcpServers": {
    "type": "array",
    "items": {
     "$ref": "#/$defs/McpServer"
    }
   },
   "cwd": {
    "type": "string"
   },
   "additionalDirectories": {
    "type": "array",
    "items": {
     "type": "string"
    }
   },
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
   "cwd",
   "sessionId"
  ]
 },
 "SessionId": {
  "type": "string"
 },
 "ListSessionsRequest": {
  "type": "object",
  "properties": {
   "cwd": {
    "type": [
     "string",
     "null"
    ]
   },
   "cursor": {
    "type": [
     "string",
     "null"
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
    "type": "string"
   },
   "additionalDirectories": {
    "type": "array",
    "items": {
     "type": "string"
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
   "sessionId",
   "cwd"
  ]
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
 "SetSessionModeRequest": {
  "type": "object",
  "properties": {
   "sessionId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionId"
     }
    ]
   },
   "modeId": {
    "allOf": [
     {
      "$ref": "#/$defs/SessionModeId"
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
   "modeId"
  ]
 },
 "SessionModeId": {
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
     "value": {
      "allOf": [
       {
        "$ref": "#/$defs/SessionConfigValueId"
       }
      ]
     }
    },
    "required": [
     "value"
    ]
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
   "sessionId",
   "prompt"
  ]
 },
 "ContentBlock": {
  "oneOf": [
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
   }
  ]
 },
 "TextContent": {
  "type": "object",
  "properties": {
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
   "text": {
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
 "Role": {
  "oneOf": [
   {
    "type": "string",
    "const": "assistant"
   },
   {
    "type": "string",
    "const": "user"
   }
  ]
 },
 "ImageContent": {
  "type": "object",
  "properties": {
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
   "data": {
    "type": "string"
   },
   "mimeType": {
    "type": "string"
   },
   "uri": {
    "type": [
     "string",
     "null"
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
 "AudioContent": {
  "type": "object",
  "properties": {
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
   "data": {
    "type": "string"
   },
   "mimeType": {
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
   "data",
   "mimeType"
  ]
 },
 "ResourceLink": {
  "type": "object",
  "properties": {
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
   "description": {
    "type": [
     "string",
     "null"
    ]
   },
   "mimeType": {
    "type": [
     "string",
     "null"
    ]
   },
   "name": {
    "type": "string"
   },
   "size": {
    "type": [
     "integer",
     "null"
    ]
   },
   "title": {
    "type": [
     "string",
     "null"
    ]
   },
   "uri": {
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
   "uri"
  ]
 },
 "EmbeddedResource": {
  "type": "object",
  "properties": {
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
   "resource": {
    "allOf": [
     {
      "$ref": "#/$defs/EmbeddedResourceResource"
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
   "mimeType": {
    "type": [
     "string",
     "null"
    ]
   },
   "text": {
    "type": "string"
   },
   "uri": {
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
   "text",
   "uri"
  ]
 },
 "BlobResourceContents": {
  "type": "object",
  "properties": {
   "blob": {
    "type": "string"
   },
   "mimeType": {
    "type": [
     "string",
     "null"
    ]
   },
   "uri": {
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
   "blob",
   "uri"
  ]
 },
 "WriteTextFileResponse": {
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
 "ReadTextFileResponse": {
  "type": "object",
  "properties": {
   "content": {
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
   "content"
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
  "oneOf": [
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
    ],
    "allOf": [
     {
      "$ref": "#/$defs/SelectedPermissionOutcome"
     }
    ]
   }
  ]
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
 "CreateTerminalResponse": {
  "type": "object",
  "properties": {
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
   "terminalId"
  ]
 },
 "TerminalId": {
  "type": "string"
 },
 "TerminalOutputResponse": {
  "type": "object",
  "properties": {
   "output": {
    "type": "string"
   },
   "truncated": {
    "type": "boolean"
   },
   "exitStatus": {
    "anyOf": [
     {
      "$ref": "#/$defs/TerminalExitStatus"
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
   "output",
   "truncated"
  ]
 },
 "TerminalExitStatus": {
  "type": "object",
  "properties": {
   "exitCode": {
    "type": [
     "integer",
     "null"
    ],
    "minimum": 0
   },
   "signal": {
    "type": [
     "string",
     "null"
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
 "ReleaseTerminalResponse": {
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
 "WaitForTerminalExitResponse": {
  "type": "object",
  "properties": {
   "exitCode": {
    "type": [
     "integer",
     "null"
    ],
    "minimum": 0
   },
   "signal": {
    "type": [
     "string",
     "null"
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
 "KillTerminalResponse": {
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
   }
  ]
 },
 "CancelNotification": {
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
    "type": "null"
   },
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
  "authenticate": { $ref: "#/$defs/AuthenticateRequest", $defs },
  "logout": { $ref: "#/$defs/LogoutRequest", $defs },
  "session/new": { $ref: "#/$defs/NewSessionRequest", $defs },
  "session/load": { $ref: "#/$defs/LoadSessionRequest", $defs },
  "session/list": { $ref: "#/$defs/ListSessionsRequest", $defs },
  "session/delete": { $ref: "#/$defs/DeleteSessionRequest", $defs },
  "session/resume": { $ref: "#/$defs/ResumeSessionRequest", $defs },
  "session/close": { $ref: "#/$defs/CloseSessionRequest", $defs },
  "session/set_mode": { $ref: "#/$defs/SetSessionModeRequest", $defs },
  "session/set_config_option": { $ref: "#/$defs/SetSessionConfigOptionRequest", $defs },
  "session/prompt": { $ref: "#/$defs/PromptRequest", $defs },
  "session/cancel": { $ref: "#/$defs/CancelNotification", $defs },
  "$/cancel_request": { $ref: "#/$defs/CancelRequestNotification", $defs },
};

/** The schemas of a client's answers, by the methods of our requests. */
export const answerSchemas: Schemas = {
  "fs/write_text_file": { $ref: "#/$defs/WriteTextFileResponse", $defs },
  "fs/read_text_file": { $ref: "#/$defs/ReadTextFileResponse", $defs },
  "session/request_permission": { $ref: "#/$defs/RequestPermissionResponse", $defs },
  "terminal/create": { $ref: "#/$defs/CreateTerminalResponse", $defs },
  "terminal/output": { $ref: "#/$defs/TerminalOutputResponse", $defs },
  "terminal/release": { $ref: "#/$defs/ReleaseTerminalResponse", $defs },
  "terminal/wait_for_exit": { $ref: "#/$defs/WaitForTerminalExitResponse", $defs },
  "terminal/kill": { $ref: "#/$defs/KillTerminalResponse", $defs },
  "elicitation/create": { $ref: "#/$defs/CreateElicitationResponse", $defs },
};
